//! Recaptures: captures whose work replaces that of an existing graph.
//!
//! NVIDIA's documentation does not state which call reports a difference. Here it is the call that
//! enqueues the operation, and the end of the capture if operations are missing.

use curium_sys::{CUdeviceptr, CUresult};

use crate::context::stream::Stream;
use crate::driver::state::State;
use crate::handle::Id;
use crate::object::graph::Node;
use crate::object::graph::content::Content;
use crate::object::graph::edge::Edge;
use crate::object::graph::memory::Allocation;
use crate::result::Result;

const DIFFERS: CUresult = CUresult::CUDA_ERROR_GRAPH_RECAPTURE_FAILURE;

impl State {
    /// Replaces the content of the next node of a recapture, which must be of the same kind with
    /// the same dependencies.
    pub(crate) fn recapture(
        &mut self,
        stream: Id<Stream>,
        content: Content,
        after: &[Edge],
    ) -> Result<Id<Node>> {
        let next = self.next_recaptured_node(stream);
        let matching = next.filter(|next| {
            self.graphs.get_node(*next).is_some_and(|node| {
                node.content.can_become(&content) && has_edges(&node.after, after)
            })
        });
        let Some(node) = matching else {
            self.captures
                .invalidate_captures(|capture| capture.member(stream).is_some(), DIFFERS)?;
            return Err(DIFFERS);
        };
        self.graphs.replace(node, content);
        if let Some(nodes) = self
            .captures
            .capture_mut(stream)
            .and_then(|capture| capture.remaining_nodes.as_mut())
        {
            nodes.pop_front();
        }
        Ok(node)
    }

    /// Returns the memory of the next node of a recapture, if the node allocates as many bytes.
    pub(crate) fn recaptured_allocation(
        &self,
        stream: Id<Stream>,
        size: usize,
    ) -> Option<Allocation> {
        match &self
            .graphs
            .get_node(self.next_recaptured_node(stream)?)?
            .content
        {
            Content::Allocate(allocation) if allocation.size() == size => Some(allocation.clone()),
            _ => None,
        }
    }

    /// Returns `true` if the next node of a recapture frees this memory.
    pub(crate) fn recapture_frees(&self, stream: Id<Stream>, address: CUdeviceptr) -> bool {
        let next = self
            .next_recaptured_node(stream)
            .and_then(|next| self.graphs.get_node(next));
        next.is_some_and(|node| matches!(node.content, Content::Free(freed) if freed == address))
    }

    fn next_recaptured_node(&self, stream: Id<Stream>) -> Option<Id<Node>> {
        self.captures
            .capture(stream)?
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
