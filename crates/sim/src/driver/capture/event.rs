//! Events in captures: points that other streams of the capture can wait for.

use curium_sys::CUresult;

use crate::context::stream::Stream;
use crate::driver::state::State;
use crate::handle::Id;
use crate::object::capture::Captured;
use crate::object::event::Event;
use crate::result::Result;

impl State {
    /// Records an event at the current position of a stream in its capture.
    pub(crate) fn record_captured(&mut self, event: Id<Event>, stream: Id<Stream>) -> Result {
        let capture = self
            .captures
            .capture(stream)
            .ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
        let tips = capture
            .member(stream)
            .map(|member| member.tips.clone())
            .unwrap_or_default();
        let captured = Captured {
            capture: capture.number,
            tips,
            is_lost: false,
        };
        self.contexts.set_captured(event, captured);
        Ok(())
    }

    /// Makes a stream wait for an event if one of them is in a capture. Returns `true` in this
    /// case.
    pub(crate) fn wait_captured(&mut self, stream: Id<Stream>, event: Id<Event>) -> Result<bool> {
        let Some(event) = self.contexts.event(event) else {
            return Ok(false);
        };
        match (event.captured().cloned(), event.ticket()) {
            (Some(captured), _) => self.join(stream, captured).map(|()| true),
            (None, None) => Ok(self.captures.is_capturing(stream)),
            (None, Some(_)) => {
                let isolation = CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
                self.captures
                    .invalidate_captures(|capture| capture.member(stream).is_some(), isolation)
                    .map(|()| false)
            }
        }
    }

    /// Adds the dependencies of an event that was recorded in a capture.
    fn join(&mut self, stream: Id<Stream>, captured: Captured) -> Result {
        let source = self
            .captures
            .captures
            .iter()
            .find(|capture| capture.number == captured.capture);
        match source {
            None => {
                let isolation = CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
                return self
                    .captures
                    .invalidate_captures(|capture| capture.member(stream).is_some(), isolation)
                    .and(Err(isolation));
            }
            Some(source) if !source.is_valid => {
                return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            }
            Some(_) => {}
        }
        if self
            .captures
            .captures
            .iter()
            .any(|capture| capture.member(stream).is_some() && capture.number != captured.capture)
        {
            return self.captures.invalidate_captures(
                |capture| capture.member(stream).is_some() || capture.number == captured.capture,
                CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE,
            );
        }
        if self.contexts.is_legacy(stream) {
            return self.captures.invalidate_captures(
                |capture| capture.number == captured.capture,
                CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            );
        }
        if let Some(capture) = self
            .captures
            .captures
            .iter_mut()
            .find(|capture| capture.number == captured.capture)
        {
            capture.join(stream, captured.tips);
        }
        Ok(())
    }
}
