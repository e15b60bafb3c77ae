//! Operations that captures forbid, and the captures that they invalidate.

use curium_sys::CUstream_st;

use crate::argument::Pointer;
use crate::context::Context;
use crate::context::stream::Stream;
use crate::driver::capture::conflict::UNSUPPORTED;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::result::Result;

impl Locked<'_> {
    /// Returns a stream whose properties are read or set.
    pub(crate) fn queried_stream(&mut self, raw: Pointer<CUstream_st>) -> Result<Id<Stream>> {
        let stream = self.stream(raw)?;
        self.check_no_implicit_wait(stream, false)?;
        self.captures.check_valid_capture(stream)?;
        Ok(stream)
    }

    /// Returns a stream for a wait or a query.
    pub(crate) fn awaited_stream(&mut self, raw: Pointer<CUstream_st>) -> Result<Id<Stream>> {
        let stream = self.uncaptured_stream(raw)?;
        self.check_potentially_unsafe_call()?;
        Ok(stream)
    }

    /// Checks that no stream of a context captures before all of its work is waited for; captures
    /// in the way are invalidated.
    pub(crate) fn check_uncaptured_context(&mut self, context: Id<Context>) -> Result {
        let streams = self
            .streams
            .iter()
            .filter(|(_, stream)| self.is_within(stream.context, context));
        let streams: Vec<_> = streams
            .map(|(id, _)| id)
            .filter(|id| self.captures.is_capturing(*id))
            .collect();
        self.captures.invalidate_captures(
            |capture| {
                streams
                    .iter()
                    .any(|stream| capture.member(*stream).is_some())
            },
            UNSUPPORTED,
        )
    }
}
