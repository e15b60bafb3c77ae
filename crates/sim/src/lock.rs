//! The locks of the simulator, which have ranks.
//!
//! Each lock is created with its [`Rank`], and threads take locks in rising order. Debug builds
//! check this whenever a lock is taken, so every test finds an order that could end in a deadlock,
//! whether or not another thread is there to complete it. In release builds the types are those of
//! `parking_lot`.

mod rank;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use parking_lot::WaitTimeoutResult;

pub(crate) use self::rank::Rank;
use self::rank::{Held, LockRank};

/// A mutual exclusion lock with a rank.
#[derive(Debug)]
pub(crate) struct Mutex<T> {
    rank: LockRank,
    inner: parking_lot::Mutex<T>,
}

/// A reader-writer lock with a rank. A thread reads it once at a time.
#[derive(Debug)]
pub(crate) struct RwLock<T> {
    rank: LockRank,
    inner: parking_lot::RwLock<T>,
}

/// A condition variable for a [`Mutex`].
pub(crate) struct Condvar(parking_lot::Condvar);

/// The access to the value of a lock, which is released when it is dropped. `G` is the guard of
/// `parking_lot`.
pub(crate) struct Guard<G> {
    // Dropped in this order: the lock is released before the record of it.
    inner: G,
    _held: Held,
}

/// The access to the value of a [`Mutex`].
pub(crate) type MutexGuard<'a, T> = Guard<parking_lot::MutexGuard<'a, T>>;

/// The shared access to the value of a [`RwLock`].
pub(crate) type ReadGuard<'a, T> = Guard<parking_lot::RwLockReadGuard<'a, T>>;

/// The exclusive access to the value of a [`RwLock`].
pub(crate) type WriteGuard<'a, T> = Guard<parking_lot::RwLockWriteGuard<'a, T>>;

impl<T> Mutex<T> {
    pub(crate) const fn new(rank: Rank, value: T) -> Self {
        Self {
            rank: LockRank::new(rank),
            inner: parking_lot::Mutex::new(value),
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let held = self.rank.acquire();
        Guard {
            inner: self.inner.lock(),
            _held: held,
        }
    }

    #[cfg(test)]
    pub(crate) fn into_inner(self) -> T {
        self.inner.into_inner()
    }
}

impl<T> RwLock<T> {
    pub(crate) const fn new(rank: Rank, value: T) -> Self {
        Self {
            rank: LockRank::new(rank),
            inner: parking_lot::RwLock::new(value),
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn read(&self) -> ReadGuard<'_, T> {
        let held = self.rank.acquire();
        Guard {
            inner: self.inner.read(),
            _held: held,
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn write(&self) -> WriteGuard<'_, T> {
        let held = self.rank.acquire();
        Guard {
            inner: self.inner.write(),
            _held: held,
        }
    }
}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    /// Releases the lock until the condition variable is notified.
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.0.wait(&mut guard.inner);
    }

    /// Releases the lock until the condition variable is notified or the time has passed.
    pub(crate) fn wait_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        time: Duration,
    ) -> WaitTimeoutResult {
        self.0.wait_for(&mut guard.inner, time)
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    #[inline]
    fn deref(&self) -> &G::Target {
        &self.inner
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.inner
    }
}

impl<G: fmt::Debug> fmt::Debug for Guard<G> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "State is taken while MemoryRecords is held")]
    fn falling_ranks_panic() {
        let state = Mutex::new(Rank::State, ());
        let records = RwLock::new(Rank::MemoryRecords, ());
        let _records = records.read();
        let _state = state.lock();
    }

    /// Two readers of one thread wait for each other if a writer comes in between.
    #[test]
    #[should_panic(expected = "MemoryRecords is taken while MemoryRecords is held")]
    fn second_reader_of_a_thread_panics() {
        let records = RwLock::new(Rank::MemoryRecords, ());
        let _first = records.read();
        let _second = records.read();
    }

    /// A lock is forgotten when it is released, in any order and also after a panic.
    #[test]
    fn released_locks_are_forgotten() {
        let state = Mutex::new(Rank::State, ());
        let records = RwLock::new(Rank::MemoryRecords, ());
        let first = state.lock();
        let second = records.write();
        drop(first);
        drop(second);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _records = records.write();
            let _state = state.lock();
        }));
        assert!(panicked.is_err());
        let _state = state.lock();
        let _records = records.read();
    }

    #[test]
    fn waiting_keeps_the_rank_of_the_lock() {
        let state = Mutex::new(Rank::State, ());
        let changed = Condvar::new();
        let mut guard = state.lock();
        assert!(
            changed
                .wait_for(&mut guard, Duration::from_millis(1))
                .timed_out()
        );
        drop(guard);
        drop(state.lock());
    }
}
