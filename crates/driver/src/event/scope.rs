//! Events recorded in a capture: points in a graph, not in time.

use std::sync::atomic::Ordering;

use super::Event;
use crate::hazard::AccessGuard;
use crate::{Error, Result};

impl Event {
    /// Calls `record`, which records the event under `guard`, and stores the capture that the event is in.
    #[inline]
    pub(super) fn record_in(
        &self,
        operation: &'static str,
        guard: &AccessGuard<'_>,
        record: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let scope = guard_scope(guard);
        if scope == 0 && self.shared.scope.load(Ordering::Acquire) == 0 {
            return record();
        }
        self.record_with_captures(operation, scope, record)
    }

    /// Records an event that is, or was, in a capture. The stored scope names the capture for as long as the event may
    /// be in it: other threads and call observers may wait for the event in the meantime, and such a wait adds the
    /// waiting stream to the capture.
    #[cold]
    fn record_with_captures(
        &self,
        operation: &'static str,
        scope: u64,
        record: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let _recording = self.shared.recording.acquire(operation)?;
        let stored = &self.shared.scope;
        let before = stored.load(Ordering::Acquire);
        if scope != 0 {
            stored.store(scope, Ordering::Release);
        }
        let recorded = record();
        let current = if recorded.is_ok() { scope } else { before };
        stored.store(current, Ordering::Release);
        recorded
    }

    /// Returns an argument error unless the event and the stream of `guard`, which is about to wait for it, are in the
    /// same capture or both outside of captures.
    #[inline]
    pub(crate) fn expect_scope(&self, guard: &AccessGuard<'_>) -> Result<()> {
        let recorded = self.shared.scope.load(Ordering::Acquire);
        if recorded == guard_scope(guard) {
            Ok(())
        } else {
            self.expect_same_scope(recorded, guard)
        }
    }

    /// Returns an argument error of `operation` if the event was last recorded in a capture.
    pub(super) fn expect_outside(&self, operation: &'static str) -> Result<()> {
        if self.shared.scope.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        Err(Error::argument(
            operation,
            format!("{self:?} was recorded in a capture, so it has no time"),
        ))
    }

    #[cold]
    fn expect_same_scope(&self, recorded: u64, guard: &AccessGuard<'_>) -> Result<()> {
        let stream = guard.stream();
        let reason = match (recorded, guard_scope(guard)) {
            (0, _) => format!(
                "{stream:?} is being captured, and {self:?} was not recorded in that capture"
            ),
            (_, 0) => {
                format!("{self:?} was recorded in a capture, and {stream:?} is not being captured")
            }
            _ => format!("{self:?} was recorded in a capture that {stream:?} does not belong to"),
        };
        Err(Error::argument("Stream::wait_event", reason))
    }
}

/// Returns the capture that receives the work under `guard`; 0 outside a capture.
#[inline]
fn guard_scope(guard: &AccessGuard<'_>) -> u64 {
    guard.scope().map_or(0, |scope| scope.identity())
}
