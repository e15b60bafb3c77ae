//! The generic address space: device and host memory below 2^48, and a window above it for each
//! other space.

use crate::exec::space::Space;

/// The start of shared memory in the generic address space.
pub(crate) const SHARED_WINDOW: u64 = 1 << 48;
/// The start of each thread's local memory in the generic address space.
pub(crate) const LOCAL_WINDOW: u64 = 1 << 49;
/// The start of kernel parameters in the generic address space.
pub(crate) const PARAM_WINDOW: u64 = 1 << 50;
/// The start of function addresses, at which there is no memory.
pub(crate) const FUNCTION_WINDOW: u64 = 1 << 51;

/// The size of each window, in bytes.
pub(crate) const WINDOW_SIZE: u64 = 1 << 32;
/// The size of a block's part of the shared window, in bytes: its own part first, then that of each
/// block of its cluster.
pub(crate) const BLOCK_STRIDE: u64 = 1 << 24;

/// Returns the space of a generic address and the offset in it.
#[inline(always)]
pub(crate) fn resolve(address: u64) -> (Space, u64) {
    if address < SHARED_WINDOW {
        return (Space::Global, address);
    }
    for (window, space) in [
        (SHARED_WINDOW, Space::Shared),
        (LOCAL_WINDOW, Space::Local),
        (PARAM_WINDOW, Space::Param),
    ] {
        if address.wrapping_sub(window) < WINDOW_SIZE {
            return (space, address - window);
        }
    }
    (Space::Global, address)
}
