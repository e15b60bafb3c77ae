//! A driver with its state locked.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::driver::Driver;
use crate::driver::state::State;
use crate::lock::MutexGuard;

/// The locked state of a driver, and the driver that it belongs to.
///
/// A function that changes the state and needs the driver is a method of this type, so it cannot
/// lock the state again.
pub(crate) struct Locked<'a> {
    pub(super) driver: &'a Driver,
    state: MutexGuard<'a, State>,
}

impl<'a> Locked<'a> {
    pub(super) fn new(driver: &'a Driver, state: MutexGuard<'a, State>) -> Self {
        Self { driver, state }
    }

    /// Returns the driver, whose state stays locked.
    pub(crate) fn driver(&self) -> &'a Driver {
        self.driver
    }

    /// Unlocks the state, and returns its driver.
    pub(crate) fn unlock(self) -> &'a Driver {
        self.driver
    }

    /// Unlocks the state until the condition variable is notified.
    pub(super) fn wait_for_change(&mut self) {
        self.driver.changed().wait(&mut self.state);
    }

    /// Unlocks the state until the condition variable is notified or the time has passed.
    pub(super) fn wait_for_change_or(&mut self, time: Duration) {
        self.driver.changed().wait_for(&mut self.state, time);
    }
}

impl Deref for Locked<'_> {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}
