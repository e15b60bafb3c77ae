//! The shape of a graph: its nodes and edges.

use curium_sys::{CUgraph_st, CUgraphEdgeData, CUgraphNode, CUgraphNode_st, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::handle::Id;
use crate::object::graph::Node;
use crate::object::graph::edge::is_default;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGraphGetNodes(
        &self,
        graph: Pointer<CUgraph_st>,
        nodes: Pointer<CUgraphNode>,
        count: Pointer<usize>,
    ) -> Result {
        let state = self.lock();
        let graph = state.graphs.graph(graph)?;
        write_list(nodes, count, &state.graphs.graph_nodes(graph))
    }

    pub(crate) fn cuGraphGetRootNodes(
        &self,
        graph: Pointer<CUgraph_st>,
        nodes: Pointer<CUgraphNode>,
        count: Pointer<usize>,
    ) -> Result {
        let state = self.lock();
        let mut roots = state.graphs.graph_nodes(state.graphs.graph(graph)?);
        roots.retain(|node| {
            state
                .graphs
                .get_node(*node)
                .is_some_and(|node| node.after.is_empty())
        });
        write_list(nodes, count, &roots)
    }

    pub(crate) fn cuGraphGetEdges(
        &self,
        graph: Pointer<CUgraph_st>,
        from: Pointer<CUgraphNode>,
        to: Pointer<CUgraphNode>,
        count: Pointer<usize>,
    ) -> Result {
        self.cuGraphGetEdges_v2(graph, from, to, Pointer::null(), count)
    }

    pub(crate) fn cuGraphGetEdges_v2(
        &self,
        graph: Pointer<CUgraph_st>,
        from: Pointer<CUgraphNode>,
        to: Pointer<CUgraphNode>,
        data: Pointer<CUgraphEdgeData>,
        count: Pointer<usize>,
    ) -> Result {
        let state = self.lock();
        let graph = state.graphs.graph(graph)?;
        // Without either list, the function only counts.
        if from.is_null() != to.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        check_list_for(data, from)?;
        let mut edges = Vec::new();
        for node in state.graphs.graph_nodes(graph) {
            edges.extend(
                state
                    .graphs
                    .get_node(node)
                    .into_iter()
                    .flat_map(|to| to.after.iter().map(move |edge| (*edge, node))),
            );
        }
        let tails: Vec<_> = edges.iter().map(|(_, to)| *to).collect();
        let (before, edge_data): (Vec<_>, Vec<_>) =
            edges.iter().map(|(edge, _)| (edge.from, edge.data)).unzip();
        let room = count.read()?;
        write_data(from, data, &edge_data, room)?;
        // The count is written once, with the last list.
        let mut written = room;
        write_list(
            from,
            // SAFETY: the pointer is to a local `usize`.
            unsafe { Pointer::from_raw(&raw mut written) },
            &before,
        )?;
        write_list(to, count, &tails)
    }

    pub(crate) fn cuGraphNodeGetDependencies(
        &self,
        node: Pointer<CUgraphNode_st>,
        dependencies: Pointer<CUgraphNode>,
        count: Pointer<usize>,
    ) -> Result {
        self.cuGraphNodeGetDependencies_v2(node, dependencies, Pointer::null(), count)
    }

    pub(crate) fn cuGraphNodeGetDependencies_v2(
        &self,
        node: Pointer<CUgraphNode_st>,
        dependencies: Pointer<CUgraphNode>,
        data: Pointer<CUgraphEdgeData>,
        count: Pointer<usize>,
    ) -> Result {
        let state = self.lock();
        let (_, node) = state.graphs.node(node)?;
        check_list_for(data, dependencies)?;
        let (from, edge_data): (Vec<_>, Vec<_>) =
            node.after.iter().map(|edge| (edge.from, edge.data)).unzip();
        write_data(dependencies, data, &edge_data, count.read()?)?;
        write_list(dependencies, count, &from)
    }

    pub(crate) fn cuGraphNodeGetDependentNodes(
        &self,
        node: Pointer<CUgraphNode_st>,
        dependents: Pointer<CUgraphNode>,
        count: Pointer<usize>,
    ) -> Result {
        self.cuGraphNodeGetDependentNodes_v2(node, dependents, Pointer::null(), count)
    }

    pub(crate) fn cuGraphNodeGetDependentNodes_v2(
        &self,
        node: Pointer<CUgraphNode_st>,
        dependents: Pointer<CUgraphNode>,
        data: Pointer<CUgraphEdgeData>,
        count: Pointer<usize>,
    ) -> Result {
        let state = self.lock();
        let (id, node) = state.graphs.node(node)?;
        check_list_for(data, dependents)?;
        let mut later = Vec::new();
        let mut edge_data = Vec::new();
        for other in state.graphs.graph_nodes(node.graph) {
            let edges = state
                .graphs
                .get_node(other)
                .map_or(&[][..], |other| &other.after);
            if let Some(edge) = edges.iter().find(|edge| edge.from == id) {
                later.push(other);
                edge_data.push(edge.data);
            }
        }
        write_data(dependents, data, &edge_data, count.read()?)?;
        write_list(dependents, count, &later)
    }
}

/// Writes the handles that fit into the caller's list, and null into the rest; without a list, only
/// their number.
fn write_list(list: Pointer<CUgraphNode>, count: Pointer<usize>, nodes: &[Id<Node>]) -> Result {
    if list.is_null() {
        return count.write(nodes.len());
    }
    let room = count.read()?;
    let handles = nodes
        .iter()
        .map(|node| node.as_raw())
        .chain(std::iter::repeat(std::ptr::null_mut()));
    // SAFETY: the caller of the C function has room for the reported number of handles.
    unsafe { list.write_all(handles.take(room)) }?;
    count.write(nodes.len().min(room))
}

/// Checks that a caller who requests edge data requests the nodes too.
fn check_list_for(data: Pointer<CUgraphEdgeData>, nodes: Pointer<CUgraphNode>) -> Result {
    if nodes.is_null() && !data.is_null() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(())
}

/// Writes the edge data that fits into the caller's list, if the caller passed one. Nodes without
/// the data of their edges are an error if some data is not the default.
fn write_data(
    nodes: Pointer<CUgraphNode>,
    output: Pointer<CUgraphEdgeData>,
    data: &[CUgraphEdgeData],
    room: usize,
) -> Result {
    if output.is_null() {
        return if nodes.is_null() || data.iter().all(is_default) {
            Ok(())
        } else {
            Err(CUresult::CUDA_ERROR_LOSSY_QUERY)
        };
    }
    // SAFETY: the caller of the C function has room for the reported number of edge data.
    unsafe { output.write_all(data.iter().copied().take(room)) }
}
