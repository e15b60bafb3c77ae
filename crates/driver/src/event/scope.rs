//! Events recorded in a capture: points in a graph, not in time.

use std::sync::atomic::Ordering;

use super::Event;
use crate::{Error, Result};

impl Event {
    /// Returns the capture of the last record; 0 outside a capture.
    #[inline]
    pub(crate) fn scope(&self) -> u64 {
        self.shared.scope.load(Ordering::Acquire)
    }

    /// Calls `record`, which records the event in the capture `scope`, and stores the capture.
    /// `operation` is named in errors.
    #[inline]
    pub(crate) fn record_in(
        &self,
        operation: &'static str,
        scope: u64,
        record: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if scope == 0 && self.scope() == 0 {
            return record();
        }
        self.record_with_captures(operation, scope, record)
    }

    /// Records an event that is, or was, in a capture. The stored scope names the capture for as
    /// long as the event may be in it: other threads and call observers may wait for the event in
    /// the meantime, and such a wait adds the waiting stream to the capture.
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

    /// Returns an argument error of `operation` if the event was last recorded in a capture.
    pub(super) fn check_outside(&self, operation: &'static str) -> Result<()> {
        if self.scope() == 0 {
            return Ok(());
        }
        Err(Error::argument(
            operation,
            format!("{self:?} was recorded in a capture, so it has no time"),
        ))
    }
}
