//! Edges of graphs: the dependencies of nodes.

use curium_sys::{CUgraph_st, CUgraphDependencyType, CUgraphEdgeData, CUgraphNode, CUresult};

use super::{Graph, Node};
use crate::argument::{Argument, ConstPointer, Pointer, elements};
use crate::driver::{Driver, Result, State};
use crate::handle::Id;

/// A dependency of a node.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    pub(in crate::driver) from: Id<Node>,
    pub(in crate::driver) data: CUgraphEdgeData,
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
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
        let graph = state.graph(graph)?;
        let added: Vec<_> = state
            .listed(graph, from, data, count)?
            .into_iter()
            .zip(state.members(graph, to, count)?)
            .collect();
        for (index, (edge, to)) in added.iter().enumerate() {
            let is_present = state
                .nodes
                .get(*to)
                .is_none_or(|node| node.after.iter().any(|other| other.from == edge.from));
            let is_repeated = added[..index]
                .iter()
                .any(|(other, end)| (other.from, end) == (edge.from, to));
            if edge.from == *to || is_repeated || is_present {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
        }
        for (edge, to) in added {
            if let Some(node) = state.nodes.get_mut(to) {
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
        let graph = state.graph(graph)?;
        if state.allocates(graph) {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        let from = state.members(graph, from, count)?;
        let to = state.members(graph, to, count)?;
        for (from, to) in from.iter().zip(&to) {
            let edges = state.nodes.get(*to).map_or(&[][..], |node| &node.after);
            if edges.iter().all(|edge| edge.from != *from) {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
        }
        for (from, to) in from.into_iter().zip(to) {
            if let Some(node) = state.nodes.get_mut(to) {
                node.after.retain(|edge| edge.from != from);
            }
        }
        Ok(())
    }

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

impl State {
    /// Returns edges to one node from the distinct nodes that the caller listed, with edge data if any.
    pub(in crate::driver) fn edges(
        &self,
        graph: Id<Graph>,
        nodes: ConstPointer<CUgraphNode>,
        data: ConstPointer<CUgraphEdgeData>,
        count: usize,
    ) -> Result<Vec<Edge>> {
        let edges = self.listed(graph, nodes, data, count)?;
        let has_duplicate = edges
            .iter()
            .enumerate()
            .any(|(index, edge)| edges[..index].iter().any(|other| other.from == edge.from));
        if has_duplicate {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(edges)
    }

    /// Returns edges between any nodes.
    fn listed(
        &self,
        graph: Id<Graph>,
        nodes: ConstPointer<CUgraphNode>,
        data: ConstPointer<CUgraphEdgeData>,
        count: usize,
    ) -> Result<Vec<Edge>> {
        let nodes = self.members(graph, nodes, count)?;
        let data = if data.is_null() {
            vec![CUgraphEdgeData::default(); count]
        } else {
            // SAFETY: the caller of the C function passed as many data as nodes, or none.
            unsafe { elements(data.as_ptr(), count) }?.to_vec()
        };
        if !data.iter().all(is_known) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(nodes
            .into_iter()
            .zip(data)
            .map(|(from, data)| Edge { from, data })
            .collect())
    }
}

/// Returns `true` if the type of an edge exists and the bytes reserved for the driver are zero.
fn is_known(data: &CUgraphEdgeData) -> bool {
    let last = CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.0;
    u32::from(data.type_) <= last && data.reserved == [0; 5]
}

impl Edge {
    /// Creates an edge without data.
    pub(crate) fn from(node: Id<Node>) -> Self {
        Self {
            from: node,
            data: CUgraphEdgeData::default(),
        }
    }
}
