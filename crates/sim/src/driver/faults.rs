//! The faults of a driver.

use std::sync::atomic::{AtomicBool, Ordering};

use curium_sys::Function;

use crate::fault::{Fault, FaultOutcome, FaultPlan, PendingFaults};
use crate::lock::{Mutex, Rank};

/// The faults that calls may meet.
pub(crate) struct Faults {
    pending: Mutex<PendingFaults>,
    /// `true` if a fault may be pending: most drivers never have one.
    may_be_pending: AtomicBool,
}

impl Faults {
    pub(crate) fn new(plan: &FaultPlan) -> Self {
        Self {
            pending: Mutex::new(Rank::Faults, PendingFaults::new(plan)),
            may_be_pending: AtomicBool::new(true),
        }
    }

    pub(crate) fn add(&self, fault: Fault) {
        self.pending.lock().add(fault);
        self.may_be_pending.store(true, Ordering::Release);
    }

    pub(crate) fn clear(&self) {
        self.pending.lock().clear();
        self.may_be_pending.store(false, Ordering::Release);
    }

    /// Returns the faults that a call meets, which counts as one of its function.
    pub(crate) fn apply(&self, function: Function) -> Option<FaultOutcome> {
        let may_be_pending = self.may_be_pending.load(Ordering::Acquire);
        may_be_pending.then(|| self.pending.lock().apply(function))
    }
}
