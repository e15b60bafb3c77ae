//! A lock for a value that one thread uses frequently, and other threads rarely.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::lock_api::{GuardSend, Mutex, RawMutex};

/// A spin lock that is unlocked by a plain store and therefore costs a single atomic read-modify-write. It is held
/// briefly, never across driver calls or user code.
pub(super) type OwnerLock<T> = Mutex<RawOwnerLock, T>;

/// The state of an [`OwnerLock`].
#[derive(Debug)]
pub(super) struct RawOwnerLock {
    is_locked: AtomicBool,
}

// SAFETY: the exchange in `try_lock` succeeds for one thread at a time until `unlock`, and is ordered after the last
// `unlock`.
unsafe impl RawMutex for RawOwnerLock {
    type GuardMarker = GuardSend;

    const INIT: Self = Self { is_locked: AtomicBool::new(false) };

    fn lock(&self) {
        while !self.try_lock() {
            std::thread::yield_now();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        !self.is_locked.swap(true, Ordering::Acquire)
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.is_locked.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_value_is_not_given_twice() {
        let lock = OwnerLock::new(1);
        let mut first = lock.try_lock().expect("the lock is free");
        assert!(lock.try_lock().is_none());
        *first = 2;
        drop(first);
        assert_eq!(*lock.lock(), 2);
    }

    #[test]
    fn increments_of_many_threads_are_all_counted() {
        let lock = OwnerLock::new(0_u64);
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..rounds).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 4 * rounds);
    }
}
