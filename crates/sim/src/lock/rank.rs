//! The order in which the simulator's locks are taken.

#[cfg(debug_assertions)]
use std::cell::Cell;

/// The rank of a lock. A thread takes locks in rising order: with a lock held, it takes only locks
/// of ranks that are listed below it.
///
/// Two locks of one rank are never held by a thread at the same time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Rank {
    /// The threads that wait for a slot.
    SlotLine,
    /// A driver in its slot.
    Slot,
    /// The textures that a launch has used. A miss looks the object up in the state.
    LaunchTextures,
    /// The surfaces that a launch has used.
    LaunchSurfaces,
    /// The objects of a driver and their queued work.
    State,
    /// The conditional values of an executable graph.
    GraphConditions,
    /// The memory of graphs.
    GraphMemory,
    /// The allocations of a driver.
    MemoryRecords,
    /// The address ranges of device memory.
    #[cfg(all(target_os = "linux", not(miri)))]
    MemoryRanges,
    /// The device memory that other processes may have opened.
    #[cfg(all(target_os = "linux", not(miri)))]
    SharedMemory,
    /// The host memory that was freed last.
    Quarantine,
    /// The happens-before order of work.
    RaceOrder,
    /// The marks of a block of memory, while they are split or merged.
    RaceMarks,
    /// The reports about kernels, copies and graphs.
    Reports,
    /// The faults that are not applied yet.
    Faults,
    /// The threads of a driver.
    Threads,
    /// The driver's log.
    Log,
    /// The cache of compiled images.
    Images,
    /// The output of a running kernel.
    LaunchOutput,
    /// The output of kernels that have ended.
    KernelOutput,
    /// The callback for activities.
    ActivityObserver,
}

/// The rank that a lock carries, which occupies no memory in release builds.
#[derive(Clone, Copy, Debug)]
pub(super) struct LockRank {
    #[cfg(debug_assertions)]
    rank: Rank,
}

/// The record that the calling thread holds a lock. It is part of the guard, and stays on the
/// thread of the guard.
#[derive(Debug)]
pub(super) struct Held {
    #[cfg(debug_assertions)]
    rank: Rank,
}

#[cfg(debug_assertions)]
thread_local! {
    /// The ranks of the locks that the thread holds, in no order. Without a destructor, since
    /// threads also take locks while they end.
    static HELD: Cell<[Option<Rank>; MAX_HELD]> = const { Cell::new([None; MAX_HELD]) };
}

/// The maximum number of locks that a thread holds.
#[cfg(debug_assertions)]
const MAX_HELD: usize = 8;

#[cfg(not(debug_assertions))]
impl LockRank {
    pub(super) const fn new(_rank: Rank) -> Self {
        Self {}
    }

    #[inline]
    pub(super) fn acquire(self) -> Held {
        Held {}
    }
}

#[cfg(debug_assertions)]
impl LockRank {
    pub(super) const fn new(rank: Rank) -> Self {
        Self { rank }
    }

    /// Records that the calling thread is about to take the lock.
    ///
    /// # Panics
    ///
    /// Panics if the thread holds a lock of this rank or of a higher one.
    #[track_caller]
    pub(super) fn acquire(self) -> Held {
        let mut held = HELD.get();
        if let Some(highest) = held.iter().flatten().max() {
            assert!(
                *highest < self.rank,
                "lock ranks: {:?} is taken while {highest:?} is held; take locks in the order of `Rank`",
                self.rank
            );
        }
        let free = held.iter_mut().find(|slot| slot.is_none());
        *free.expect("no thread holds more locks than `MAX_HELD`") = Some(self.rank);
        HELD.set(held);
        Held { rank: self.rank }
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        let mut held = HELD.get();
        for slot in &mut held {
            if *slot == Some(self.rank) {
                *slot = None;
            }
        }
        HELD.set(held);
    }
}
