//! Edges of graphs: the dependencies of nodes.

use curium_sys::{CUgraphDependencyType, CUgraphEdgeData, CUgraphNode, CUresult};

use crate::argument::{ConstPointer, elements};
use crate::driver::graph::Graphs;
use crate::handle::Id;
use crate::object::graph::Graph;
use crate::object::graph::edge::Edge;
use crate::result::Result;

impl Graphs {
    /// Returns edges to one node from the distinct nodes that the caller listed, with edge data if
    /// any.
    pub(crate) fn edges(
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
    pub(crate) fn listed(
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
