//! Recaptures: captures whose work replaces that of an existing graph.
//!
//! NVIDIA's documentation does not state which call reports a difference. Here it is the call that enqueues the operation, and the end of
//! the capture if operations are missing.

use std::collections::VecDeque;
use std::ffi::c_void;

use curium_sys::{
    CUdeviceptr, CUgraph_st, CUgraphRecaptureCallback, CUresult, CUstream_st, CUstreamCaptureMode,
};

use super::{Capture, check_mode};
use crate::argument::Pointer;
use crate::driver::graph::{Allocation, Content, Edge};
use crate::driver::{Driver, Node, Result, State, Stream};
use crate::handle::Id;

const DIFFERS: CUresult = CUresult::CUDA_ERROR_GRAPH_RECAPTURE_FAILURE;

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
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
        let origin = self.capturable(&mut state, stream)?;
        let graph = state.graph(graph)?;
        if state.is_captured_into(graph) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if callback.is_some() {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        let remaining_nodes = Some(VecDeque::from(state.graph_nodes(graph)));
        self.begin_capture(
            &mut state,
            Capture {
                is_into_existing_graph: true,
                remaining_nodes,
                ..Capture::new(graph, origin, mode)
            },
        );
        state.release_graph_objects(graph);
        self.call_destructors(state);
        Ok(())
    }
}

impl State {
    /// Replaces the content of the next node of a recapture, which must be of the same kind with the same dependencies.
    pub(super) fn recapture(
        &mut self,
        stream: Id<Stream>,
        content: Content,
        after: &[Edge],
    ) -> Result<Id<Node>> {
        let next = self.next_recaptured_node(stream);
        let matching = next.filter(|next| {
            self.nodes.get(*next).is_some_and(|node| {
                node.content.can_become(&content) && has_edges(&node.after, after)
            })
        });
        let Some(node) = matching else {
            self.invalidate_captures(|capture| capture.member(stream).is_some(), DIFFERS)?;
            return Err(DIFFERS);
        };
        self.replace(node, content);
        if let Some(nodes) = self
            .capture_mut(stream)
            .and_then(|capture| capture.remaining_nodes.as_mut())
        {
            nodes.pop_front();
        }
        Ok(node)
    }

    /// Returns the memory of the next node of a recapture, if the node allocates as many bytes.
    pub(in crate::driver) fn recaptured_allocation(
        &self,
        stream: Id<Stream>,
        size: usize,
    ) -> Option<Allocation> {
        match &self.nodes.get(self.next_recaptured_node(stream)?)?.content {
            Content::Allocate(allocation) if allocation.size() == size => Some(allocation.clone()),
            _ => None,
        }
    }

    /// Returns `true` if the next node of a recapture frees this memory.
    pub(in crate::driver) fn is_freed_again(
        &self,
        stream: Id<Stream>,
        address: CUdeviceptr,
    ) -> bool {
        let next = self
            .next_recaptured_node(stream)
            .and_then(|next| self.nodes.get(next));
        next.is_some_and(|node| matches!(node.content, Content::Free(freed) if freed == address))
    }

    fn next_recaptured_node(&self, stream: Id<Stream>) -> Option<Id<Node>> {
        self.capture(stream)?
            .remaining_nodes
            .as_ref()?
            .front()
            .copied()
    }
}

fn data(edge: &Edge) -> (u8, u8, u8) {
    (edge.data.from_port, edge.data.to_port, edge.data.type_)
}

/// Returns `true` if these are the same edges, in any order.
fn has_edges(old: &[Edge], new: &[Edge]) -> bool {
    old.len() == new.len()
        && new.iter().all(|edge| {
            old.iter()
                .any(|other| (other.from, data(other)) == (edge.from, data(edge)))
        })
}
