//! Events recorded in a capture: points in a graph, not in time.

use std::sync::atomic::Ordering;

use super::Event;
use crate::hazard::AccessGuard;
use crate::{Error, Result};

impl Event {
    /// Stores that the event was recorded under `guard`.
    #[inline]
    pub(super) fn recorded_in(&self, guard: &AccessGuard<'_>) {
        self.shared.scope.store(scope_of(guard), Ordering::Release);
    }

    /// Returns an argument error unless the event and the stream of `guard`, which is about to wait for it, are in the
    /// same capture or both outside of captures.
    #[inline]
    pub(crate) fn expect_scope_of(&self, guard: &AccessGuard<'_>) -> Result<()> {
        let recorded = self.shared.scope.load(Ordering::Acquire);
        if recorded == scope_of(guard) { Ok(()) } else { self.expect_same_scope(recorded, guard) }
    }

    /// Returns an argument error of `operation` if the event was last recorded in a capture.
    pub(super) fn expect_outside(&self, operation: &'static str) -> Result<()> {
        if self.shared.scope.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        Err(Error::argument(operation, format!("{self:?} was recorded in a capture, so it has no time")))
    }

    #[cold]
    fn expect_same_scope(&self, recorded: u64, guard: &AccessGuard<'_>) -> Result<()> {
        let stream = guard.stream();
        let reason = match (recorded, scope_of(guard)) {
            (0, _) => format!("{stream:?} is being captured, and {self:?} was not recorded in that capture"),
            (_, 0) => format!("{self:?} was recorded in a capture, and {stream:?} is not being captured"),
            _ => format!("{self:?} was recorded in a capture that {stream:?} does not belong to"),
        };
        Err(Error::argument("Stream::wait_event", reason))
    }
}

/// Returns the capture that receives the work under `guard`; 0 outside a capture.
#[inline]
fn scope_of(guard: &AccessGuard<'_>) -> u64 {
    guard.scope().map_or(0, |scope| scope.identity())
}
