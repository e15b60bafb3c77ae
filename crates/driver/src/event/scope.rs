//! Events that are recorded in a capture: points in a graph, and none in time.

use std::sync::atomic::Ordering;

use super::Event;
use crate::{Error, Result, Stream};

impl Event {
    /// Notes that the event was recorded on `stream`.
    #[inline]
    pub(super) fn recorded_in(&self, stream: &Stream) {
        let scope = if stream.scope().is_none() { 0 } else { scope_of(stream) };
        self.shared.scope.store(scope, Ordering::Release);
    }

    /// An argument error if the event and `stream`, which would wait for it, are not in the same capture scope, if they are in any.
    #[inline]
    pub(crate) fn expect_scope_of(&self, stream: &Stream) -> Result<()> {
        let recorded = self.shared.scope.load(Ordering::Acquire);
        if recorded == 0 && stream.scope().is_none() { Ok(()) } else { self.expect_same_scope(recorded, stream) }
    }

    /// An argument error of `operation` if the event was recorded in a capture scope last.
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
    fn expect_same_scope(&self, recorded: u64, stream: &Stream) -> Result<()> {
        let reason = match (recorded, scope_of(stream)) {
            (recorded, waiting) if recorded == waiting => return Ok(()),
            (0, _) => format!("{stream:?} is being captured, and {self:?} was not recorded in that capture"),
            (_, 0) => format!("{self:?} was recorded in a capture, which {stream:?} is not in"),
            _ => format!("{self:?} was recorded in another capture than the one that {stream:?} is in"),
        };
        Err(Error::argument("Stream::wait_event", reason))
    }
}

/// The capture scope that work on a stream goes to; 0 is none.
#[cold]
#[inline]
fn scope_of(stream: &Stream) -> u64 {
    stream.open_scope().map_or(0, |scope| scope.identity())
}
