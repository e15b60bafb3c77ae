//! The C functions for captures.
//!
//! A capture begins in one stream, its origin. Other streams join it when they wait for events that
//! were recorded in it. For each of its streams it records the dependencies of the next node. A
//! call that breaks the rules invalidates the captures that it touches: they end without a graph.

mod conflict;
mod dependencies;
mod mode;
mod recapture;

use curium_sys::{
    CUgraph, CUgraph_st, CUgraphEdgeData, CUgraphNode, CUresult, CUstream_st, CUstreamCaptureMode,
};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::context::stream::{Stream, this_thread};
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::object::capture::Capture;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    /// Begins a capture that permits potentially unsafe calls, as before modes were introduced.
    pub(crate) fn cuStreamBeginCapture(&self, stream: Pointer<CUstream_st>) -> Result {
        self.cuStreamBeginCapture_v2(stream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)
    }

    pub(crate) fn cuStreamBeginCapture_v2(
        &self,
        stream: Pointer<CUstream_st>,
        mode: CUstreamCaptureMode,
    ) -> Result {
        check_mode(mode)?;
        let mut state = self.lock();
        let origin = state.capturable(stream)?;
        let graph = state.graphs.new_graph(None);
        state.begin_capture(Capture::new(graph, origin, mode));
        Ok(())
    }

    pub(crate) fn cuStreamBeginCaptureToGraph(
        &self,
        stream: Pointer<CUstream_st>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        data: ConstPointer<CUgraphEdgeData>,
        count: usize,
        mode: CUstreamCaptureMode,
    ) -> Result {
        check_mode(mode)?;
        let mut state = self.lock();
        let graph = state.graphs.graph(graph)?;
        let origin = state.capturable(stream)?;
        let tips = state.graphs.edges(graph, after, data, count)?;
        if state.captures.is_captured_into(graph) {
            return Err(CUresult::CUDA_ERROR_ILLEGAL_STATE);
        }
        let mut capture = Capture {
            is_into_existing_graph: true,
            ..Capture::new(graph, origin, mode)
        };
        capture.join(origin, tips);
        state.begin_capture(capture);
        Ok(())
    }

    pub(crate) fn cuStreamEndCapture(
        &self,
        stream: Pointer<CUstream_st>,
        graph: Pointer<CUgraph>,
    ) -> Result {
        let mut state = self.lock();
        let stream = state.stream(stream)?;
        state.check_no_implicit_wait(stream, false)?;
        let capture = state
            .captures
            .capture_mut(stream)
            .ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
        if capture.origin != stream {
            capture.is_valid = false;
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        }
        if !capture.is_relaxed() && capture.thread != this_thread() {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        }
        let number = capture.number;
        let is_new_graph = !capture.is_into_existing_graph;
        let ended = state.end_capture(number);
        self.set_capturing(!state.captures.is_empty());
        graph.write_if_not_null(ended.map_or(std::ptr::null_mut(), Id::as_raw));
        if let Ok(captured) = ended
            && is_new_graph
            && graph.is_null()
        {
            // Nobody can use the graph.
            state.graphs.remove_graph(captured);
        }
        state.call_destructors();
        ended.map(|_| ())
    }
}

impl Locked<'_> {
    /// Returns a stream in which a capture can begin.
    pub(crate) fn capturable(&mut self, stream: Pointer<CUstream_st>) -> Result<Id<Stream>> {
        let id = self.stream(stream)?;
        self.check_no_implicit_wait(id, false)?;
        if self.contexts.is_legacy(id) {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
        if self.captures.is_capturing(id) {
            Err(CUresult::CUDA_ERROR_ILLEGAL_STATE)
        } else {
            Ok(id)
        }
    }

    pub(crate) fn begin_capture(&mut self, mut capture: Capture) {
        let driver = self.driver();
        capture.number = self.next_number();
        self.captures.begin(capture);
        driver.set_capturing(true);
    }
}

/// Checks that a mode exists.
pub(crate) fn check_mode(mode: CUstreamCaptureMode) -> Result {
    if mode.0 > CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(())
}
