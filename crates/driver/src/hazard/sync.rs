//! The locks of hazard tracking. Under loom they are loom's, which explores every interleaving.

#[cfg(all(test, loom))]
mod checked;

#[cfg(all(test, loom))]
pub(super) use loom::sync::atomic::AtomicU64;
#[cfg(not(all(test, loom)))]
pub(super) use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(all(test, loom)))]
pub(super) use std::sync::atomic::AtomicU64;

#[cfg(all(test, loom))]
pub(super) use self::checked::{Condvar, Mutex, MutexGuard, current_thread};

/// Returns the number of the calling thread, which no other live thread has.
#[cfg(not(all(test, loom)))]
pub(super) fn current_thread() -> usize {
    use parking_lot::lock_api::GetThreadId as _;

    parking_lot::RawThreadId::INIT.nonzero_thread_id().get()
}
