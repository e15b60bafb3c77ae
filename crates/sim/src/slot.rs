//! The slots of the simulators, which are the only global state.

use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::config::MAX_DRIVERS;
use crate::driver::Driver;
use crate::lock::{Condvar, Mutex, Rank, RwLock};

/// The number of slots for threads that have taken one already: threads that each wait for a second
/// simulator do not wait for each other.
const RESERVED: usize = 8;

/// The slot of the exported library.
pub(crate) const EXPORTED: usize = 0;

/// The time after which a thread that created all live simulators gives up to wait for a slot,
/// since it may be the one to drop them.
const PATIENCE: Duration = Duration::from_secs(60);

static DRIVERS: [RwLock<Option<Arc<Driver>>>; MAX_DRIVERS] =
    [const { RwLock::new(Rank::Slot, None) }; MAX_DRIVERS];
static LINE: Line = Line::new();

/// The threads that wait for a slot.
struct Line {
    slots: Mutex<Slots>,
    freed: Condvar,
}

struct Slots {
    /// The thread that took each slot.
    takers: [Option<ThreadId>; MAX_DRIVERS],
    /// Slots are reused as late as possible, so that stale functions of an ended simulator reach no
    /// other driver.
    last: usize,
}

/// Returns the driver in `slot`.
pub(crate) fn driver(slot: usize) -> Option<Arc<Driver>> {
    DRIVERS[slot].read().clone()
}

/// Returns every driver.
pub(crate) fn drivers() -> impl Iterator<Item = Arc<Driver>> {
    (0..MAX_DRIVERS).filter_map(driver)
}

/// Takes a free slot, and waits for one if there is none. Returns `None` if this thread created all
/// simulators and none was dropped.
pub(crate) fn take() -> Option<usize> {
    LINE.take(PATIENCE)
}

/// Puts a driver into its slot.
pub(crate) fn fill(slot: usize, driver: Arc<Driver>) {
    *DRIVERS[slot].write() = Some(driver);
}

/// Removes the driver from its slot, which remains reserved.
pub(crate) fn empty(slot: usize) -> Option<Arc<Driver>> {
    DRIVERS[slot].write().take()
}

/// Releases the slot for another simulator.
pub(crate) fn release(slot: usize) {
    LINE.release(slot);
}

impl Line {
    const fn new() -> Self {
        Self {
            slots: Mutex::new(
                Rank::SlotLine,
                Slots {
                    takers: [None; MAX_DRIVERS],
                    last: EXPORTED,
                },
            ),
            freed: Condvar::new(),
        }
    }

    fn take(&self, patience: Duration) -> Option<usize> {
        let taker = thread::current().id();
        let mut slots = self.slots.lock();
        loop {
            if let Some(slot) = slots.take_next(taker) {
                return Some(slot);
            }
            let is_timed_out = self.freed.wait_for(&mut slots, patience).timed_out();
            if is_timed_out && slots.are_taken_by(taker) {
                return None;
            }
        }
    }

    fn release(&self, slot: usize) {
        self.slots.lock().takers[slot] = None;
        // The first in line may be a thread that may not take the slot.
        self.freed.notify_all();
    }
}

impl Slots {
    fn take_next(&mut self, taker: ThreadId) -> Option<usize> {
        let free = self.takers[EXPORTED + 1..]
            .iter()
            .filter(|other| other.is_none())
            .count();
        if free <= RESERVED && !self.takers.contains(&Some(taker)) {
            return None;
        }
        let in_turn = (1..MAX_DRIVERS).map(|step| 1 + (self.last + step - 1) % (MAX_DRIVERS - 1));
        let slot = in_turn
            .into_iter()
            .find(|slot| self.takers[*slot].is_none())?;
        self.takers[slot] = Some(taker);
        self.last = slot;
        Some(slot)
    }

    /// Returns `true` if one thread took all slots.
    fn are_taken_by(&self, taker: ThreadId) -> bool {
        self.takers[EXPORTED + 1..]
            .iter()
            .all(|other| *other == Some(taker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_allocated_in_turn() {
        let taker = thread::current().id();
        let mut slots = Line::new().slots.into_inner();
        let first: Vec<_> = (1..MAX_DRIVERS)
            .filter_map(|_| slots.take_next(taker))
            .collect();
        assert_eq!(first, (1..MAX_DRIVERS).collect::<Vec<_>>());
        assert_eq!(slots.take_next(taker), None);
        slots.takers[3] = None;
        slots.takers[9] = None;
        slots.last = 5;
        assert_eq!(slots.take_next(taker), Some(9));
        assert_eq!(slots.take_next(taker), Some(3));
    }

    /// Threads that wait for their first simulator leave slots to those that have one.
    #[test]
    fn reserved_slots_are_for_further_simulators() {
        let line = Line::new();
        let patience = Duration::from_millis(1);
        let firsts = MAX_DRIVERS - 1 - RESERVED;
        thread::scope(|scope| {
            for _ in 1..firsts {
                let first = scope.spawn(|| line.take(patience));
                assert!(first.join().is_ok_and(|slot| slot.is_some()));
            }
            assert!(line.take(patience).is_some());
            let waiter = scope.spawn(|| line.take(patience));
            for _ in 0..RESERVED {
                assert!(line.take(patience).is_some());
            }
            thread::sleep(Duration::from_millis(50));
            assert!(!waiter.is_finished());
            (1..=RESERVED + 1).for_each(|slot| line.release(slot));
            assert!(waiter.join().is_ok_and(|slot| slot.is_some()));
        });
    }

    /// A thread waits as long as others use simulators, and fails only if it has all of them
    /// itself.
    #[test]
    fn thread_waits_in_line_for_a_slot() {
        let line = Line::new();
        let patience = Duration::from_millis(1);
        for _ in 1..MAX_DRIVERS {
            assert!(line.take(patience).is_some());
        }
        assert_eq!(line.take(patience), None);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| line.take(patience));
            thread::sleep(Duration::from_millis(50));
            assert!(!waiter.is_finished());
            (7..=7 + RESERVED).for_each(|slot| line.release(slot));
            assert_eq!(waiter.join().ok().flatten(), Some(7));
        });
    }
}
