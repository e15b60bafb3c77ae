//! Edges of graphs: the dependencies of nodes.

use curium_sys::{CUgraph_st, CUgraphEdgeData, CUgraphNode, CUresult};

use crate::argument::{Argument as _, ConstPointer, Pointer};
use crate::call::Call;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGraphAddDependencies(
        &self,
        graph: Pointer<CUgraph_st>,
        from: ConstPointer<CUgraphNode>,
        to: ConstPointer<CUgraphNode>,
        count: usize,
    ) -> Result {
        // SAFETY: the pointer is null, so nothing is read.
        let no_data = unsafe { std::ptr::null::<CUgraphEdgeData>().receive() };
        self.cuGraphAddDependencies_v2(graph, from, to, no_data, count)
    }

    pub(crate) fn cuGraphAddDependencies_v2(
        &self,
        graph: Pointer<CUgraph_st>,
        from: ConstPointer<CUgraphNode>,
        to: ConstPointer<CUgraphNode>,
        data: ConstPointer<CUgraphEdgeData>,
        count: usize,
    ) -> Result {
        let mut state = self.lock();
        let graph = state.graphs.graph(graph)?;
        let added: Vec<_> = state
            .graphs
            .listed(graph, from, data, count)?
            .into_iter()
            .zip(state.graphs.members(graph, to, count)?)
            .collect();
        for (index, (edge, to)) in added.iter().enumerate() {
            let is_present = state
                .graphs
                .get_node(*to)
                .is_none_or(|node| node.after.iter().any(|other| other.from == edge.from));
            let is_repeated = added[..index]
                .iter()
                .any(|(other, end)| (other.from, end) == (edge.from, to));
            if edge.from == *to || is_repeated || is_present {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
        }
        for (edge, to) in added {
            if let Some(node) = state.graphs.get_node_mut(to) {
                node.after.push(edge);
            }
        }
        Ok(())
    }

    pub(crate) fn cuGraphRemoveDependencies(
        &self,
        graph: Pointer<CUgraph_st>,
        from: ConstPointer<CUgraphNode>,
        to: ConstPointer<CUgraphNode>,
        count: usize,
    ) -> Result {
        let mut state = self.lock();
        let graph = state.graphs.graph(graph)?;
        if state.graphs.allocates(graph) {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        let from = state.graphs.members(graph, from, count)?;
        let to = state.graphs.members(graph, to, count)?;
        for (from, to) in from.iter().zip(&to) {
            let edges = state
                .graphs
                .get_node(*to)
                .map_or(&[][..], |node| &node.after);
            if edges.iter().all(|edge| edge.from != *from) {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
        }
        for (from, to) in from.into_iter().zip(to) {
            if let Some(node) = state.graphs.get_node_mut(to) {
                node.after.retain(|edge| edge.from != from);
            }
        }
        Ok(())
    }

    /// Ignores the data, as NVIDIA's driver does: there is one edge at most between two nodes.
    pub(crate) fn cuGraphRemoveDependencies_v2(
        &self,
        graph: Pointer<CUgraph_st>,
        from: ConstPointer<CUgraphNode>,
        to: ConstPointer<CUgraphNode>,
        _data: ConstPointer<CUgraphEdgeData>,
        count: usize,
    ) -> Result {
        self.cuGraphRemoveDependencies(graph, from, to, count)
    }
}
