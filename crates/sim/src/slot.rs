//! The slots of the simulators, which are the only global state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};

use crate::driver::Driver;

/// The maximum number of live drivers, including the exported one.
pub(crate) const COUNT: usize = 16;

/// The slot of the exported library.
pub(crate) const EXPORTED: usize = 0;

/// The time for which a new simulator waits for a slot.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

static DRIVERS: [RwLock<Option<Arc<Driver>>>; COUNT] = [const { RwLock::new(None) }; COUNT];
static FREE: Mutex<Slots> = Mutex::new(Slots {
    taken: [false; COUNT],
    last: EXPORTED,
});
static FREED: Condvar = Condvar::new();

struct Slots {
    taken: [bool; COUNT],
    /// Slots are reused as late as possible, so that stale functions of an ended simulator reach no other driver.
    last: usize,
}

/// Returns the driver in `slot`.
pub(crate) fn driver(slot: usize) -> Option<Arc<Driver>> {
    DRIVERS[slot].read().clone()
}

/// Returns every driver.
pub(crate) fn drivers() -> impl Iterator<Item = Arc<Driver>> {
    (0..COUNT).filter_map(driver)
}

/// Takes a free slot, and waits for one if there is none.
pub(crate) fn take() -> Option<usize> {
    let deadline = Instant::now() + PATIENCE;
    let mut slots = FREE.lock();
    loop {
        if let Some(slot) = slots.take_next() {
            return Some(slot);
        }
        if FREED.wait_until(&mut slots, deadline).timed_out() {
            return slots.take_next();
        }
    }
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
    FREE.lock().taken[slot] = false;
    FREED.notify_one();
}

impl Slots {
    fn take_next(&mut self) -> Option<usize> {
        let in_turn = (1..COUNT).map(|step| 1 + (self.last + step - 1) % (COUNT - 1));
        let slot = in_turn.into_iter().find(|slot| !self.taken[*slot])?;
        self.taken[slot] = true;
        self.last = slot;
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_allocated_in_turn() {
        let mut slots = Slots {
            taken: [false; COUNT],
            last: EXPORTED,
        };
        let first: Vec<_> = (1..COUNT).filter_map(|_| slots.take_next()).collect();
        assert_eq!(first, (1..COUNT).collect::<Vec<_>>());
        assert_eq!(slots.take_next(), None);
        slots.taken[3] = false;
        slots.taken[9] = false;
        slots.last = 5;
        assert_eq!(slots.take_next(), Some(9));
        assert_eq!(slots.take_next(), Some(3));
    }
}
