//! Events in captures: points that other streams of the capture can wait for.

use curium_sys::CUresult;

use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::object::event::Event;
use crate::result::Result;

impl Locked<'_> {
    /// Checks that an event can be waited for or queried: its work was not captured, and no capture
    /// forbids it.
    pub(crate) fn check_not_captured(&mut self, event: Id<Event>) -> Result {
        let captured = self
            .events
            .get(event)
            .and_then(|event| event.captured.as_ref());
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
