//! Operations that captures forbid, and the captures that they invalidate.

use curium_sys::CUstream_st;

use crate::argument::Pointer;
use crate::call::Call;
use crate::context::Context;
use crate::context::stream::Stream;
use crate::driver::capture::conflict::UNSUPPORTED;
use crate::driver::state::State;
use crate::handle::Id;
use crate::result::Result;

impl Call<'_> {
    /// Returns a stream whose properties are read or set.
    pub(crate) fn queried_stream(
        &self,
        state: &mut State,
        raw: Pointer<CUstream_st>,
    ) -> Result<Id<Stream>> {
        let stream = self.stream(state, raw)?;
        state.expect_no_implicit_wait(stream, false)?;
        state.expect_valid_capture(stream)?;
        Ok(stream)
    }

    /// Returns a stream for a wait or a query.
    pub(crate) fn awaited_stream(
        &self,
        state: &mut State,
        raw: Pointer<CUstream_st>,
    ) -> Result<Id<Stream>> {
        let stream = self.uncaptured_stream(state, raw)?;
        self.permit_unsafe(state)?;
        Ok(stream)
    }

    /// Checks that no stream of a context captures before all of its work is waited for; captures in the way are invalidated.
    pub(crate) fn expect_uncaptured_context(
        &self,
        state: &mut State,
        context: Id<Context>,
    ) -> Result {
        let streams = state
            .streams
            .iter()
            .filter(|(_, stream)| state.is_within(stream.context, context));
        let streams: Vec<_> = streams
            .map(|(id, _)| id)
            .filter(|id| state.is_capturing(*id))
            .collect();
        state.invalidate_captures(
            |capture| {
                streams
                    .iter()
                    .any(|stream| capture.member(*stream).is_some())
            },
            UNSUPPORTED,
        )
    }
}
