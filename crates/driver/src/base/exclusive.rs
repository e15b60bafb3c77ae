//! A mutex that may be held across driver calls and user code.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::lock_api::GetThreadId as _;
use parking_lot::{Mutex, MutexGuard, RawThreadId};

use crate::{Error, Result};

/// A mutex that may be held across driver calls and user code.
///
/// Locking it twice on the same thread is an error instead of a deadlock. A user-defined call
/// observer or memory resource may cause this.
#[derive(Debug, Default)]
pub struct Exclusive<T> {
    state: Mutex<T>,
    /// The identity of the thread that holds the lock; 0 if unlocked.
    owner: AtomicUsize,
}

/// Unlocks an [`Exclusive`] when it is dropped.
#[derive(Debug)]
pub struct ExclusiveGuard<'a, T> {
    state: MutexGuard<'a, T>,
    owner: &'a AtomicUsize,
}

impl<T> Exclusive<T> {
    /// Creates an unlocked mutex around `state`.
    #[inline]
    pub const fn new(state: T) -> Self {
        Self {
            state: Mutex::new(state),
            owner: AtomicUsize::new(0),
        }
    }

    /// Locks the mutex, blocking until it is available.
    ///
    /// # Errors
    ///
    /// An argument error of `operation` if this thread holds the lock.
    #[inline]
    pub fn acquire(&self, operation: &'static str) -> Result<ExclusiveGuard<'_, T>> {
        let thread = usize::from(RawThreadId::INIT.nonzero_thread_id());
        // Only this thread stores its own identity.
        if self.owner.load(Ordering::Relaxed) == thread {
            return Err(reentrant(operation));
        }
        let state = self.state.lock();
        self.owner.store(thread, Ordering::Relaxed);
        Ok(ExclusiveGuard {
            state,
            owner: &self.owner,
        })
    }

    /// Returns the state without locking: the mutable borrow guarantees exclusive access.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.state.get_mut()
    }
}

#[cold]
fn reentrant(operation: &'static str) -> Error {
    let reason = "re-entrant use: this thread is in the middle of another operation on the same object (called by a \
                  call observer or by a resource)";
    Error::argument(operation, reason)
}

impl<T> Deref for ExclusiveGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.state
    }
}

impl<T> DerefMut for ExclusiveGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.state
    }
}

impl<T> Drop for ExclusiveGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_lock_on_a_thread_is_an_error() {
        let lock = Exclusive::new(1);
        let held = lock.acquire("first").expect("the lock is free");
        let error = lock
            .acquire("second")
            .expect_err("this thread holds the lock")
            .to_string();
        assert!(
            error.contains("second") && error.contains("re-entrant"),
            "{error}"
        );
        drop(held);
        *lock.acquire("third").expect("the lock is free") = 2;
        assert_eq!(*lock.acquire("fourth").expect("the lock is free"), 2);
    }

    #[test]
    fn lock_waits_for_another_thread() {
        let lock = Exclusive::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    (0..100).for_each(|_| {
                        *lock.acquire("add").expect("another thread holds the lock") += 1;
                    });
                });
            }
        });
        assert_eq!(*lock.acquire("read").expect("the lock is free"), 200);
    }
}
