//! A lock for a value that one thread, the owner, uses frequently, and other threads rarely.
//!
//! The owner pays no atomic read-modify-write and no fence. It announces its use with a plain store and then looks for a claim of another
//! thread. A claimant announces itself, makes all threads of the process execute a [barrier](super::barrier), and then waits until the
//! owner's use has ended. The barrier stands in for the fence that the owner lacks: either the owner finds the claim, or the claimant finds
//! the use.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};
use std::thread;

use super::barrier;

/// The order of the stores that end a use. In Miri, a `SeqCst` load may read a weaker store that a `SeqCst` store has replaced.
/// C++ excludes that, so that `Release` suffices on processors.
const END: Ordering = if cfg!(miri) {
    Ordering::SeqCst
} else {
    Ordering::Release
};

/// The lock. It is held briefly, never across driver calls or user code.
pub(super) struct OwnerLock<T> {
    /// `true` while the owner uses the value.
    is_in_use: AtomicBool,
    /// `true` while another thread has the value, or waits for it.
    is_claimed: AtomicBool,
    /// `true` if claimants can make the owner's thread execute a barrier. Otherwise the owner executes one for each use.
    is_fenced_by_claimants: bool,
    value: UnsafeCell<T>,
}

/// The use of the value by the owner.
pub(super) struct Owned<'a, T> {
    lock: &'a OwnerLock<T>,
}

/// The use of the value by any thread.
pub(super) struct Claimed<'a, T> {
    lock: &'a OwnerLock<T>,
}

// SAFETY: one thread at a time gets a use of the value, which it may share.
unsafe impl<T: Send + Sync> Sync for OwnerLock<T> {}

impl<T> OwnerLock<T> {
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
            // Keeps the compiler from moving the load before the store. The claimant's barrier keeps the processor from that.
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

    /// Waits for the values of several locks, with one barrier. Returns `None` if the system has withdrawn the barrier, in which case
    /// owners cannot be excluded. Callers exclude each other, because they may name the locks in different orders.
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
        // SAFETY: only the owner's thread uses the value until `self` is dropped: a claimant waits for that.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Owned<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; the owner has one use at a time, which is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Deref for Claimed<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the caller of `claim` received this after the owner's use had ended; the owner and other claimants find the claim.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Claimed<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `self` is borrowed exclusively.
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

impl<T> fmt::Debug for OwnerLock<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (in_use, claimed) = (
            self.is_in_use.load(Ordering::Relaxed),
            self.is_claimed.load(Ordering::Relaxed),
        );
        write!(formatter, "OwnerLock(in use: {in_use}, claimed: {claimed})")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn value_has_one_user_at_a_time() {
        let lock = OwnerLock::new(1);
        // SAFETY: this thread is the owner, and has no other use.
        let mut owned = unsafe { lock.own() }.expect("no other thread claims it");
        *owned = 2;
        let has_claimed = AtomicBool::new(false);
        thread::scope(|scope| {
            let claiming = scope.spawn(|| {
                let claimed = lock.claim().expect("there is a barrier");
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
        let claimed = lock.claim().expect("there is a barrier");
        // SAFETY: as above; the use has ended.
        assert!(unsafe { lock.own() }.is_none(), "it is claimed");
        drop(claimed);
        // SAFETY: as above.
        assert_eq!(unsafe { lock.own() }.as_deref(), Some(&2));
    }

    #[test]
    fn several_values_are_claimed_at_the_same_time() {
        let locks = [1, 2, 3].map(OwnerLock::new);
        let claimed = OwnerLock::claim_all(&locks).expect("there is a barrier");
        // SAFETY: this thread is the owner, and has no use.
        assert!(locks.iter().all(|lock| unsafe { lock.own() }.is_none()));
        assert_eq!(claimed.iter().map(|value| **value).sum::<i32>(), 6);
        drop(claimed);
        // SAFETY: as above.
        assert!(locks.iter().all(|lock| unsafe { lock.own() }.is_some()));
    }

    #[test]
    fn changes_of_the_owner_and_of_claimants_are_all_counted() {
        for is_fenced_by_claimants in [barrier::is_available(), false] {
            let lock = OwnerLock {
                is_fenced_by_claimants,
                ..OwnerLock::new(0_usize)
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
                        // SAFETY: this thread is the only owner, and the use ends with the statement.
                        let counted = unsafe { lock.own() }.map(|mut value| *value += 1).is_some();
                        missed.fetch_add(usize::from(!counted), Ordering::Relaxed);
                    }
                });
                for _ in 0..2 {
                    scope.spawn(|| {
                        (0..claims).for_each(|_| *lock.claim().expect("there is a barrier") += 1);
                    });
                }
            });
            let counted = *lock.claim().expect("there is a barrier");
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
            let mut next = Vec::new();
            let mut after = |step: &dyn Fn(&mut Self)| {
                let mut state = self.clone();
                step(&mut state);
                next.push(state);
            };
            if !self.delayed.is_empty() {
                after(&|state| state.is_in_use = state.delayed.pop_front().expect("there is one"));
            }
            match self.owner {
                Step::Announce => after(&|state| {
                    state.delayed.push_back(true);
                    state.owner = Step::Look;
                }),
                Step::Look if self.is_claimed => after(&Self::end_use),
                Step::Look => after(&|state| state.owner = Step::Use),
                Step::Use => after(&Self::end_use),
                Step::Barrier | Step::Done => {}
            }
            match self.claimant {
                Step::Announce => after(&|state| {
                    state.is_claimed = true;
                    state.claimant = if has_barrier {
                        Step::Barrier
                    } else {
                        Step::Look
                    };
                }),
                Step::Barrier => after(&|state| {
                    state.is_in_use = state
                        .delayed
                        .drain(..)
                        .next_back()
                        .unwrap_or(state.is_in_use);
                    state.claimant = Step::Look;
                }),
                Step::Look if !self.is_in_use => after(&|state| state.claimant = Step::Use),
                Step::Use => after(&|state| {
                    state.is_claimed = false;
                    state.claimant = Step::Done;
                }),
                Step::Look | Step::Done => {}
            }
            next
        }

        /// The owner starts again and again.
        fn end_use(state: &mut Self) {
            state.delayed.push_back(false);
            state.owner = if state.delayed.len() < 4 {
                Step::Announce
            } else {
                Step::Done
            };
        }

        /// Returns `true` if some order of the steps ends with two users.
        fn can_have_two_users(has_barrier: bool) -> bool {
            let (mut seen, mut open) = (HashSet::new(), vec![Self::default()]);
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

    #[test]
    fn no_order_of_the_steps_has_two_users_and_one_has_without_the_barrier() {
        assert!(!Model::can_have_two_users(true));
        assert!(Model::can_have_two_users(false), "the model finds the race");
    }
}
