//! Events in captures: points that other streams of the capture can wait for.

use curium_sys::CUresult;

use crate::call::Call;
use crate::driver::state::State;
use crate::handle::Id;
use crate::object::event::Event;
use crate::result::Result;

impl Call<'_> {
    /// Checks that an event can be waited for or queried: its work was not captured, and no capture forbids it.
    pub(crate) fn expect_not_captured(&self, state: &mut State, event: Id<Event>) -> Result {
        let captured = state
            .events
            .get(event)
            .and_then(|event| event.captured.as_ref());
        if let Some((number, is_lost)) = captured.map(|record| (record.capture, record.is_lost)) {
            if is_lost {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
            let code = CUresult::CUDA_ERROR_CAPTURED_EVENT;
            return state
                .invalidate_captures(|capture| capture.number == number, code)
                .and(Err(code));
        }
        self.permit_unsafe(state)
    }
}
