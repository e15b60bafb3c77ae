//! Operations that captures forbid, and the captures that they invalidate.

use curium_sys::{CUresult, CUstream_st};

use crate::argument::Pointer;
use crate::context::Context;
use crate::context::stream::Stream;
use crate::driver::capture::conflict::UNSUPPORTED;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::object::event::Event;
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
        let streams = self.contexts.streams_within(context).into_iter();
        let streams: Vec<_> = streams
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

    /// Checks that an event can be waited for or queried: its work was not captured, and no capture
    /// forbids it.
    pub(crate) fn check_not_captured(&mut self, event: Id<Event>) -> Result {
        let captured = self.contexts.event(event).and_then(Event::captured);
        if let Some((number, is_lost)) = captured.map(|record| (record.capture, record.is_lost)) {
            if is_lost {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
            let code = CUresult::CUDA_ERROR_CAPTURED_EVENT;
            return self
                .captures
                .invalidate_captures(|capture| capture.number == number, code)
                .and(Err(code));
        }
        self.check_potentially_unsafe_call()
    }
}
