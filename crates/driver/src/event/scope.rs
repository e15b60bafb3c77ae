//! Events that are recorded in a capture: points in a graph, not in time.

use std::sync::atomic::Ordering;

use super::Event;
use crate::hazard::AccessGuard;
use crate::{Error, Result};

impl Event {
    /// Notes that the event was recorded under `guard`.
    #[inline]
    pub(super) fn recorded_in(&self, guard: &AccessGuard<'_>) {
        self.shared.scope.store(scope_of(guard), Ordering::Release);
    }

    /// Returns an argument error if the event and the guard's stream, which would wait for it, are not in the same capture, if they are in
    /// any.
    #[inline]
    pub(crate) fn expect_scope_of(&self, guard: &AccessGuard<'_>) -> Result<()> {
        let recorded = self.shared.scope.load(Ordering::Acquire);
        if recorded == scope_of(guard) { Ok(()) } else { self.expect_same_scope(recorded, guard) }
    }

    /// Returns an argument error of `operation` if the event was recorded in a capture scope last.
    #[inline]
    pub(super) fn expect_outside(&self, operation: &'static str) -> Result<()> {
        if self.shared.scope.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        Err(Error::argument(
            operation,
            format!("{self:?} was recorded in a capture: it is a point in a graph, and none in time"),
        ))
    }

    #[cold]
    #[inline]
    fn expect_same_scope(&self, recorded: u64, guard: &AccessGuard<'_>) -> Result<()> {
        let stream = guard.stream();
        let reason = match (recorded, scope_of(guard)) {
            (0, _) => format!("{stream:?} is being captured, and {self:?} was not recorded in that capture"),
            (_, 0) => format!("{self:?} was recorded in a capture, which {stream:?} is not in"),
            _ => format!("{self:?} was recorded in another capture than the one that {stream:?} is in"),
        };
        Err(Error::argument("Stream::wait_event", reason))
    }
}

/// Returns the capture that work under `guard` goes to; 0 is none.
#[inline]
fn scope_of(guard: &AccessGuard<'_>) -> u64 {
    guard.scope().map_or(0, |scope| scope.identity())
}
