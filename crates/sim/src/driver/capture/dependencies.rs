//! The capture dependencies of streams: queries and changes.

use curium_sys::{CUgraph, CUgraphEdgeData, CUgraphNode, CUresult, cuuint64_t};

use crate::argument::Pointer;
use crate::context::stream::Stream;
use crate::driver::state::State;
use crate::handle::Id;
use crate::object::graph::edge::is_default;
use crate::result::Result;

/// The caller's output pointers for the state of a capture; null pointers are skipped.
pub(crate) struct CaptureOutputs {
    pub(crate) number: Pointer<cuuint64_t>,
    pub(crate) graph: Pointer<CUgraph>,
    pub(crate) nodes: Pointer<*const CUgraphNode>,
    pub(crate) data: Pointer<*const CUgraphEdgeData>,
    pub(crate) count: Pointer<usize>,
}

impl State {
    /// Writes the capture of a stream to the caller's variables.
    pub(crate) fn write_capture_info(
        &mut self,
        stream: Id<Stream>,
        outputs: &CaptureOutputs,
    ) -> Result {
        let capture = self
            .captures
            .capture_mut(stream)
            .ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
        let number = capture.number;
        let graph = capture.graph;
        let member = capture
            .member_mut(stream)
            .ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
        member.list();
        let requests_nodes = !outputs.nodes.is_null() && outputs.data.is_null();
        if requests_nodes && member.listed.data.iter().any(|data| !is_default(data)) {
            return Err(CUresult::CUDA_ERROR_LOSSY_QUERY);
        }
        outputs.number.write_if_not_null(number);
        outputs.graph.write_if_not_null(graph.as_raw());
        outputs
            .nodes
            .write_if_not_null(member.listed.nodes.as_ptr().cast());
        outputs.data.write_if_not_null(member.listed.data.as_ptr());
        outputs.count.write_if_not_null(member.listed.nodes.len());
        Ok(())
    }
}
