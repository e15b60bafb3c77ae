//! A lock for a value that one thread, the owner, uses frequently, and other threads rarely.
//!
//! The owner pays no atomic read-modify-write and no fence. It announces its use with a plain store
//! and then looks for a claim of another thread. A claimant announces itself, makes all threads of
//! the process execute a [barrier](super::barrier), and then waits until the owner's use has ended.
//! The barrier stands in for the fence that the owner lacks: either the owner finds the claim, or
//! the claimant finds the use.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};
use std::thread;

use super::barrier;

/// The order of the stores that end a use. In Miri, a `SeqCst` load may read a weaker store that a
/// `SeqCst` store has replaced. C++ excludes that, so that `Release` suffices on processors.
const END: Ordering = if cfg!(miri) {
    Ordering::SeqCst
} else {
    Ordering::Release
};

/// The lock. It is held briefly, never across driver calls or user code.
pub(super) struct BiasedLock<T> {
    /// `true` while the owner uses the value.
    is_in_use: AtomicBool,
    /// `true` while another thread has the value, or waits for it.
    is_claimed: AtomicBool,
    /// `true` if claimants can make the owner's thread execute a barrier. Otherwise the owner
    /// executes one for each use.
    is_fenced_by_claimants: bool,
    value: UnsafeCell<T>,
}

/// The use of the value by the owner.
pub(super) struct Owned<'a, T> {
    lock: &'a BiasedLock<T>,
}

/// The use of the value by any thread.
pub(super) struct Claimed<'a, T> {
    lock: &'a BiasedLock<T>,
}

// SAFETY: one thread at a time gets a use of the value, which it may share.
unsafe impl<T: Send + Sync> Sync for BiasedLock<T> {}

impl<T> BiasedLock<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            is_in_use: AtomicBool::new(false),
            is_claimed: AtomicBool::new(false),
            is_fenced_by_claimants: barrier::is_available(),
            value: UnsafeCell::new(value),
        }
    }

    /// Uses the value as its owner. Returns `None` if another thread has claimed it.
    ///
    /// # Safety
    ///
    /// - One thread, always the same, calls this.
    /// - It does so only after its last use has ended.
    #[inline]
    pub(super) unsafe fn own(&self) -> Option<Owned<'_, T>> {
        if self.is_fenced_by_claimants {
            self.is_in_use.store(true, Ordering::Relaxed);
            // Keeps the compiler from moving the load before the store. The claimant's barrier
            // keeps the processor from that.
            compiler_fence(Ordering::SeqCst);
        } else {
            self.is_in_use.swap(true, Ordering::SeqCst);
        }
        // Ends the use in either case, which nobody observes if it has not begun.
        let owned = Owned { lock: self };
        if self.is_claimed.load(Ordering::SeqCst) {
            None
        } else {
            Some(owned)
        }
    }

    /// Waits for the value.
    #[cfg(test)]
    pub(super) fn claim(&self) -> Option<Claimed<'_, T>> {
        Self::claim_all([self]).map(|mut claimed| claimed.remove(0))
    }

    /// Waits for the values of several locks, with one barrier. Returns `None` if the system has
    /// withdrawn the barrier, in which case owners cannot be excluded. Callers exclude each other,
    /// because they may name the locks in different orders.
    pub(super) fn claim_all<'a>(
        locks: impl IntoIterator<Item = &'a Self>,
    ) -> Option<Vec<Claimed<'a, T>>> {
        let claimed: Vec<_> = locks.into_iter().map(Self::announce).collect();
        if claimed
            .iter()
            .any(|claimed| claimed.lock.is_fenced_by_claimants)
            && !barrier::execute()
        {
            return None;
        }
        claimed
            .iter()
            .for_each(|claimed| claimed.lock.wait_for_owner());
        Some(claimed)
    }

    /// Keeps the owner and other claimants from the next use.
    fn announce(&self) -> Claimed<'_, T> {
        while self.is_claimed.swap(true, Ordering::SeqCst) {
            thread::yield_now();
        }
        Claimed { lock: self }
    }

    fn wait_for_owner(&self) {
        while self.is_in_use.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    }
}

impl<T> Deref for Owned<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: only the owner's thread uses the value until `self` is dropped: a claimant waits
        // for that.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Owned<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: only the owner's thread uses the value until `self` is dropped: a claimant waits
        // for that; the owner has one use at a time, which is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Deref for Claimed<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the caller of `claim` received this after the owner's use had ended; the owner
        // and other claimants find the claim.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Claimed<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the caller of `claim` received this after the owner's use had ended; the owner
        // and other claimants find the claim, and `self` is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Owned<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.is_in_use.store(false, END);
    }
}

impl<T> Drop for Claimed<'_, T> {
    fn drop(&mut self) {
        self.lock.is_claimed.store(false, END);
    }
}

impl<T> fmt::Debug for BiasedLock<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_use = self.is_in_use.load(Ordering::Relaxed);
        let claimed = self.is_claimed.load(Ordering::Relaxed);
        write!(
            formatter,
            "BiasedLock(in use: {in_use}, claimed: {claimed})"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn value_has_one_user_at_a_time() {
        let lock = BiasedLock::new(1);
        // SAFETY: this thread is the owner, and has no other use.
        let mut owned = unsafe { lock.own() }.expect("no other thread claims it");
        *owned = 2;
        let has_claimed = AtomicBool::new(false);
        thread::scope(|scope| {
            let claiming = scope.spawn(|| {
                let claimed = lock.claim().expect("no barrier");
                has_claimed.store(true, Ordering::Relaxed);
                *claimed
            });
            while !lock.is_claimed.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            thread::sleep(std::time::Duration::from_millis(5));
            assert!(
                !has_claimed.load(Ordering::Relaxed),
                "the owner uses the value"
            );
            drop(owned);
            assert_eq!(claiming.join().expect("it does not panic"), 2);
        });
        let claimed = lock.claim().expect("no barrier");
        // SAFETY: this thread is the owner, and has no other use; the use has ended.
        assert!(unsafe { lock.own() }.is_none(), "it is claimed");
        drop(claimed);
        // SAFETY: this thread is the owner, and has no other use; the use has ended.
        assert_eq!(unsafe { lock.own() }.as_deref(), Some(&2));
    }

    #[test]
    fn several_values_are_claimed_at_the_same_time() {
        let locks = [1, 2, 3].map(BiasedLock::new);
        let claimed = BiasedLock::claim_all(&locks).expect("no barrier");
        // SAFETY: this thread is the owner, and has no use.
        assert!(locks.iter().all(|lock| unsafe { lock.own() }.is_none()));
        assert_eq!(claimed.iter().map(|value| **value).sum::<i32>(), 6);
        drop(claimed);
        // SAFETY: this thread is the owner, and has no use.
        assert!(locks.iter().all(|lock| unsafe { lock.own() }.is_some()));
    }

    /// Increments by the owner and by claimants are all counted.
    #[test]
    fn no_change_is_lost() {
        for is_fenced_by_claimants in [barrier::is_available(), false] {
            let lock = BiasedLock {
                is_fenced_by_claimants,
                ..BiasedLock::new(0_usize)
            };
            let (rounds, claims) = if cfg!(miri) {
                (100, 10)
            } else {
                (200_000, 200)
            };
            let missed = AtomicUsize::new(0);
            thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        // SAFETY: this thread is the only owner, and the use ends with the
                        // statement.
                        let counted = unsafe { lock.own() }.map(|mut value| *value += 1).is_some();
                        missed.fetch_add(usize::from(!counted), Ordering::Relaxed);
                    }
                });
                for _ in 0..2 {
                    scope.spawn(|| {
                        (0..claims).for_each(|_| *lock.claim().expect("no barrier") += 1);
                    });
                }
            });
            let counted = *lock.claim().expect("no barrier");
            assert_eq!(
                counted + missed.load(Ordering::Relaxed),
                rounds + 2 * claims
            );
        }
    }

    /// The protocol on a processor that delays the stores of the owner's thread, as x86 does.
    #[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
    struct Model {
        is_in_use: bool,
        is_claimed: bool,
        /// The owner's stores to `is_in_use` that no other thread can read yet.
        delayed: VecDeque<bool>,
        owner: Step,
        claimant: Step,
    }

    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    enum Step {
        #[default]
        Announce,
        Barrier,
        Look,
        Use,
        Done,
    }

    impl Model {
        /// Returns the states after each possible step.
        fn next(&self, has_barrier: bool) -> Vec<Self> {
            let mut publish = self.clone();
            let published = publish.publish_store();
            let mut owner = self.clone();
            let owner_moved = owner.step_owner();
            let mut claimant = self.clone();
            let claimant_moved = claimant.step_claimant(has_barrier);
            [
                (publish, published),
                (owner, owner_moved),
                (claimant, claimant_moved),
            ]
            .into_iter()
            .filter_map(|(state, has_changed)| has_changed.then_some(state))
            .collect()
        }

        /// Makes the owner's oldest store readable. Returns `false` if there is none.
        fn publish_store(&mut self) -> bool {
            match self.delayed.pop_front() {
                Some(is_in_use) => self.is_in_use = is_in_use,
                None => return false,
            }
            true
        }

        /// Advances the owner. Returns `false` if it is done.
        fn step_owner(&mut self) -> bool {
            match self.owner {
                Step::Announce => {
                    self.delayed.push_back(true);
                    self.owner = Step::Look;
                }
                Step::Look if self.is_claimed => self.end_use(),
                Step::Look => self.owner = Step::Use,
                Step::Use => self.end_use(),
                Step::Barrier | Step::Done => return false,
            }
            true
        }

        /// Advances the claimant. Returns `false` if it waits or is done.
        fn step_claimant(&mut self, has_barrier: bool) -> bool {
            match self.claimant {
                Step::Announce => {
                    self.is_claimed = true;
                    self.claimant = if has_barrier {
                        Step::Barrier
                    } else {
                        Step::Look
                    };
                }
                Step::Barrier => {
                    if let Some(last) = self.delayed.drain(..).next_back() {
                        self.is_in_use = last;
                    }
                    self.claimant = Step::Look;
                }
                Step::Look if !self.is_in_use => self.claimant = Step::Use,
                Step::Use => {
                    self.is_claimed = false;
                    self.claimant = Step::Done;
                }
                Step::Look | Step::Done => return false,
            }
            true
        }

        /// The owner starts again and again.
        fn end_use(&mut self) {
            self.delayed.push_back(false);
            self.owner = if self.delayed.len() < 4 {
                Step::Announce
            } else {
                Step::Done
            };
        }

        /// Returns `true` if some order of the steps ends with two users.
        fn can_have_two_users(has_barrier: bool) -> bool {
            let mut seen = HashSet::new();
            let mut open = vec![Self::default()];
            while let Some(state) = open.pop() {
                if state.owner == Step::Use && state.claimant == Step::Use {
                    return true;
                }
                open.extend(
                    state
                        .next(has_barrier)
                        .into_iter()
                        .filter(|next| seen.insert(next.clone())),
                );
            }
            assert!(
                seen.iter().any(|state| state.claimant == Step::Done),
                "a claim succeeds"
            );
            false
        }
    }

    /// Without the barrier, some order of the steps has two users.
    #[test]
    fn barrier_prevents_two_users() {
        assert!(!Model::can_have_two_users(true));
        assert!(Model::can_have_two_users(false), "the model finds the race");
    }
}
