//! The generic address space: device memory below 2^47, and a window above it for each other space.

use super::op::Space;

/// Where shared memory begins in the generic address space.
pub(crate) const SHARED_WINDOW: u64 = 1 << 48;
/// Where each thread's local memory begins in the generic address space.
pub(crate) const LOCAL_WINDOW: u64 = 1 << 49;
/// Where kernel parameters begin in the generic address space.
pub(crate) const PARAM_WINDOW: u64 = 1 << 50;
/// Where functions have their addresses; none of it is memory.
pub(crate) const FUNCTION_WINDOW: u64 = 1 << 51;

/// Bytes of each window.
pub(crate) const WINDOW_SIZE: u64 = 1 << 32;
/// Bytes of shared addresses that belong to a block: its own come first, then those of each block of its cluster.
pub(crate) const BLOCK_STRIDE: u64 = 1 << 24;

/// The space and the offset in it that a generic address names.
#[inline(always)]
pub(crate) fn resolve(address: u64) -> (Space, u64) {
    if address < SHARED_WINDOW {
        return (Space::Global, address);
    }
    for (window, space) in [(SHARED_WINDOW, Space::Shared), (LOCAL_WINDOW, Space::Local), (PARAM_WINDOW, Space::Param)]
    {
        if address.wrapping_sub(window) < WINDOW_SIZE {
            return (space, address - window);
        }
    }
    (Space::Global, address)
}
