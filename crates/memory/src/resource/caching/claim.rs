//! A value that one thread at a time looks at, and that nobody waits for on the hot path.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// A value that is claimed for a few instructions by the thread that owns it, and now and then by one that empties it.
///
/// The owner's claim is one exchange in a line of memory that is its own; whoever finds the value claimed goes another way.
pub(super) struct Claim<T> {
    is_claimed: AtomicBool,
    value: UnsafeCell<T>,
}

/// A claimed value.
pub(super) struct Claimed<'a, T> {
    claim: &'a Claim<T>,
}

// SAFETY: the value is reached through a claim only, of which there is one at a time, so that sharing it passes it around.
unsafe impl<T: Send> Sync for Claim<T> {}

impl<T> Claim<T> {
    #[inline]
    pub(super) fn new(value: T) -> Self {
        Self { is_claimed: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// The value, unless somebody has it.
    #[inline]
    pub(super) fn attempt(&self) -> Option<Claimed<'_, T>> {
        if self.is_claimed.swap(true, Ordering::Acquire) { None } else { Some(Claimed { claim: self }) }
    }

    /// The value, as soon as nobody has it: holders call nobody and are done after a few instructions.
    #[inline]
    pub(super) fn wait(&self) -> Claimed<'_, T> {
        loop {
            if let Some(claimed) = self.attempt() {
                return claimed;
            }
            std::thread::yield_now();
        }
    }
}

impl<T> Deref for Claimed<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this is the only claim, and it hands out the value as long as it is borrowed.
        unsafe { &*self.claim.value.get() }
    }
}

impl<T> DerefMut for Claimed<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the only claim, and it is borrowed exclusively.
        unsafe { &mut *self.claim.value.get() }
    }
}

impl<T> fmt::Debug for Claim<T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Claim(..)")
    }
}

impl<T> Drop for Claimed<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.claim.is_claimed.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_value_is_not_given_twice() {
        let claim = Claim::new(1);
        let mut first = claim.attempt().expect("nobody has it");
        assert!(claim.attempt().is_none());
        *first = 2;
        drop(first);
        assert_eq!(*claim.wait(), 2);
    }

    #[test]
    fn claims_of_many_threads_lose_nothing() {
        let claim = Claim::new(0_u64);
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..rounds).for_each(|_| *claim.wait() += 1));
            }
        });
        assert_eq!(*claim.wait(), 4 * rounds);
    }
}
