//! Generic descriptions of nodes, and their conversion from and to content.

use std::sync::Arc;

use curium_sys::{CUctx_st, CUgraphConditionalHandle, CUresult};

use crate::argument::Pointer;
use crate::context::Context;
use crate::driver::graph::Graphs;
use crate::handle::Id;
use crate::host_pointer::HostPtr;
use crate::object::graph::Graph;
use crate::object::graph::condition::Condition;
use crate::object::graph::content::Content;
use crate::result::Result;

pub(crate) const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

impl Graphs {
    /// Returns the context of a handle that was created for a graph, or for one that contains it.
    fn condition_context(
        &self,
        graph: Id<Graph>,
        handle: CUgraphConditionalHandle,
    ) -> Option<Id<Context>> {
        let mut graph = self.graphs.get(graph);
        while let Some(current) = graph {
            if let Some(context) = current.conditions.context(handle) {
                return Some(context);
            }
            let parent = current.parent.and_then(|node| self.nodes.get(node));
            graph = parent.and_then(|node| self.graphs.get(node.graph));
        }
        None
    }

    /// Returns a conditional node with empty bodies, whose handles are given to the caller.
    pub(crate) fn condition(
        &mut self,
        graph: Id<Graph>,
        described: &mut curium_sys::CUDA_CONDITIONAL_NODE_PARAMS,
    ) -> Result<Content> {
        let context = self
            .condition_context(graph, described.handle)
            .ok_or(INVALID)?;
        // SAFETY: the context of a description is a handle, as if it were an argument.
        let named: Pointer<CUctx_st> = unsafe { Pointer::from_raw(described.ctx) };
        // As on hardware, the node belongs to the context of its handle.
        let is_foreign = !named.is_null() && Id::from(named) != context;
        if is_foreign || !Condition::allows(described.type_, described.size) {
            return Err(INVALID);
        }
        let bodies: Vec<_> = (0..described.size).map(|_| self.new_graph(None)).collect();
        // As in the driver, the list of bodies is never moved and lives as long as the node.
        let listed: Arc<[HostPtr]> = bodies
            .iter()
            .map(|body| HostPtr(body.as_raw().cast()))
            .collect();
        described.phGraph_out = listed.as_ptr().cast_mut().cast();
        Ok(Content::Condition(Condition {
            handle: described.handle,
            kind: described.type_,
            bodies,
            listed,
        }))
    }
}
