//! The C functions for graphs.
//!
//! A graph holds nodes. Each node has its [`Content`] and its dependencies. Instantiation copies
//! all of that into a [`plan`], which can be launched any number of times and no longer depends on
//! the graph.

mod add;
mod attribute;
mod condition;
mod described;
mod dot;
mod edge;
mod executable;
mod kind;
mod memory;
mod object;
mod params;
mod shape;
mod update;

use curium_sys::{CUgraph, CUgraph_st, CUgraphNode, CUgraphNode_st, CUgraphNodeType, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGraphCreate(&self, graph: Pointer<CUgraph>, flags: u32) -> Result {
        let output = graph.required()?;
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        output.write(self.lock().graphs.new_graph(None).as_raw())
    }

    pub(crate) fn cuGraphDestroy(&self, graph: Pointer<CUgraph_st>) -> Result {
        let mut state = self.lock();
        let id = state.graphs.graph(graph)?;
        if state.captures.is_captured_into(id)
            || state
                .graphs
                .get(id)
                .is_some_and(|graph| graph.parent.is_some())
        {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        state.graphs.remove_graph(id);
        state.call_destructors();
        Ok(())
    }

    pub(crate) fn cuGraphClone(
        &self,
        clone: Pointer<CUgraph>,
        graph: Pointer<CUgraph_st>,
    ) -> Result {
        let output = clone.required()?;
        let mut state = self.lock();
        let id = state.graphs.graph(graph)?;
        if state.graphs.allocates(id) || state.graphs.has_conditions(id) {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        output.write(state.graphs.clone_graph(id, None).as_raw())
    }

    pub(crate) fn cuGraphNodeFindInClone(
        &self,
        found: Pointer<CUgraphNode>,
        original: Pointer<CUgraphNode_st>,
        clone: Pointer<CUgraph_st>,
    ) -> Result {
        let output = found.required()?;
        let state = self.lock();
        let (original, _) = state.graphs.node(original)?;
        let clone = state.graphs.graph(clone)?;
        let node = state
            .graphs
            .get(clone)
            .and_then(|clone| clone.origins.get(&original))
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        output.write(node.as_raw())
    }

    pub(crate) fn cuGraphGetId(&self, graph: Pointer<CUgraph_st>, id: Pointer<u32>) -> Result {
        let state = self.lock();
        let graph = state.graphs.graph(graph)?;
        id.write(state.graphs.get(graph).map_or(0, |graph| graph.number))
    }

    pub(crate) fn cuGraphNodeGetType(
        &self,
        node: Pointer<CUgraphNode_st>,
        kind: Pointer<CUgraphNodeType>,
    ) -> Result {
        let kind = kind.required()?;
        kind.write(self.lock().graphs.node(node)?.1.content.kind())
    }

    pub(crate) fn cuGraphNodeGetContainingGraph(
        &self,
        node: Pointer<CUgraphNode_st>,
        graph: Pointer<CUgraph>,
    ) -> Result {
        graph.write(self.lock().graphs.node(node)?.1.graph.as_raw())
    }

    pub(crate) fn cuGraphNodeGetLocalId(
        &self,
        node: Pointer<CUgraphNode_st>,
        id: Pointer<u32>,
    ) -> Result {
        id.write(self.lock().graphs.node(node)?.1.number)
    }

    pub(crate) fn cuGraphNodeGetToolsId(
        &self,
        node: Pointer<CUgraphNode_st>,
        id: Pointer<u64>,
    ) -> Result {
        let state = self.lock();
        let (_, node) = state.graphs.node(node)?;
        let graph = state.graphs.get(node.graph).map_or(0, |graph| graph.number);
        id.write(u64::from(graph) << 32 | u64::from(node.number))
    }

    pub(crate) fn cuGraphDestroyNode(&self, node: Pointer<CUgraphNode_st>) -> Result {
        let mut state = self.lock();
        let (id, node) = state.graphs.node(node)?;
        let graph = node.graph;
        // As on hardware, the nodes of a graph with memory stay.
        if state.graphs.allocates(graph) {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        if state.captures.is_captured_into(graph) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        for other in state.graphs.graph_nodes(graph) {
            if let Some(other) = state.graphs.get_node_mut(other) {
                other.after.retain(|edge| edge.from != id);
            }
        }
        if let Some(graph) = state.graphs.get_mut(graph) {
            graph.nodes.retain(|other| *other != id);
        }
        state.graphs.remove_node(id);
        Ok(())
    }
}
