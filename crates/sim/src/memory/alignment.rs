//! The alignment of device memory.

/// The alignment of addresses of device memory, and the minimum distance between two allocations.
pub(super) const ALIGNMENT: u64 = 512;

/// The minimum size of an allocation that begins at a large page, as on hardware. Programs divide
/// such memory into pages.
pub(super) const LARGE_PAGE: u64 = 2 << 20;

/// Returns the alignment of an allocation of device memory.
pub(super) fn alignment(size: u64) -> u64 {
    if size < LARGE_PAGE {
        ALIGNMENT
    } else {
        LARGE_PAGE
    }
}
