//! Events recorded in a capture: points in a graph, not in time.

use std::sync::atomic::Ordering;

use super::Event;
use crate::hazard::Operation;
use crate::{Error, Result};

impl Event {
    /// Calls `record`, which records the event of `operation`, and stores the capture that the event is in.
    #[inline]
    pub(super) fn record_in(
        &self,
        operation: &Operation<'_>,
        record: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let scope = captured_in(operation);
        if scope == 0 && self.shared.scope.load(Ordering::Acquire) == 0 {
            return record();
        }
        self.record_with_captures(operation.name(), scope, record)
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

    /// Returns an argument error unless the event and the stream of `operation`, which is about to wait for it, are in the
    /// same capture or both outside of captures.
    #[inline]
    pub(crate) fn expect_scope(&self, operation: &Operation<'_>) -> Result<()> {
        let recorded = self.shared.scope.load(Ordering::Acquire);
        if recorded == captured_in(operation) {
            Ok(())
        } else {
            self.expect_same_scope(recorded, operation)
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
    fn expect_same_scope(&self, recorded: u64, operation: &Operation<'_>) -> Result<()> {
        let stream = operation.stream();
        let reason = match (recorded, captured_in(operation)) {
            (0, _) => format!(
                "{stream:?} is being captured, and {self:?} was not recorded in that capture"
            ),
            (_, 0) => {
                format!("{self:?} was recorded in a capture, and {stream:?} is not being captured")
            }
            _ => format!("{self:?} was recorded in a capture that {stream:?} does not belong to"),
        };
        Err(Error::argument(operation.name(), reason))
    }
}

/// Returns the capture that receives the work of `operation`; 0 outside a capture.
#[inline]
fn captured_in(operation: &Operation<'_>) -> u64 {
    operation.scope().map_or(0, |scope| scope.identity())
}
