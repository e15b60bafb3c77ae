//! Recaptures: captures whose work replaces that of an existing graph.
//!
//! NVIDIA's documentation does not state which call reports a difference. Here it is the call that
//! enqueues the operation, and the end of the capture if operations are missing.

use std::collections::VecDeque;
use std::ffi::c_void;

use curium_sys::{
    CUgraph_st, CUgraphRecaptureCallback, CUresult, CUstream_st, CUstreamCaptureMode,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::call::capture::check_mode;
use crate::object::capture::Capture;
use crate::result::Result;

#[expect(non_snake_case, reason = "these are C's names")]
impl Call<'_> {
    pub(crate) fn cuStreamBeginRecaptureToGraph(
        &self,
        stream: Pointer<CUstream_st>,
        mode: CUstreamCaptureMode,
        graph: Pointer<CUgraph_st>,
        callback: CUgraphRecaptureCallback,
        _user_data: Pointer<c_void>,
    ) -> Result {
        check_mode(mode)?;
        let mut state = self.lock();
        let origin = state.capturable(stream)?;
        let graph = state.graphs.graph(graph)?;
        if state.captures.is_captured_into(graph) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if callback.is_some() {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        let remaining_nodes = Some(VecDeque::from(state.graphs.graph_nodes(graph)));
        state.begin_capture(Capture {
            is_into_existing_graph: true,
            remaining_nodes,
            ..Capture::new(graph, origin, mode)
        });
        state.graphs.release_graph_objects(graph);
        state.call_destructors();
        Ok(())
    }
}
