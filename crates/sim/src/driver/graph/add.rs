//! Adding nodes to graphs.

use curium_sys::{CUgraph_st, CUgraphEdgeData, CUgraphNode, CUresult};

use crate::argument::{ConstPointer, Pointer};
use crate::driver::Driver;
use crate::driver::graph::Graphs;
use crate::driver::locked::Locked;
use crate::driver::state::State;
use crate::handle::Id;
use crate::object::graph::Graph;
use crate::object::graph::content::Content;
use crate::object::graph::edge::Edge;
use crate::result::Result;

/// The graph and the dependencies of a new node, as passed by the caller.
pub(crate) struct Spot {
    pub(crate) node: Pointer<CUgraphNode>,
    pub(crate) graph: Pointer<CUgraph_st>,
    pub(crate) after: ConstPointer<CUgraphNode>,
    pub(crate) data: Option<ConstPointer<CUgraphEdgeData>>,
    pub(crate) count: usize,
}

impl Spot {
    pub(crate) fn new(
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
    ) -> Self {
        Self {
            node,
            graph,
            after,
            data: None,
            count,
        }
    }

    pub(crate) fn with_data(self, data: ConstPointer<CUgraphEdgeData>) -> Self {
        Self {
            data: Some(data),
            ..self
        }
    }
}

impl Driver {
    /// Adds the node that `make` describes.
    pub(crate) fn add(
        &self,
        spot: &Spot,
        make: impl FnOnce(&mut Locked<'_>, Id<Graph>) -> Result<Content>,
    ) -> Result {
        let output = spot.node.required()?;
        let mut state = self.lock();
        let graph = state.graphs.graph(spot.graph)?;
        let after = match spot.data {
            Some(data) => state.graphs.edges(graph, spot.after, data, spot.count)?,
            None => state
                .graphs
                .members(graph, spot.after, spot.count)?
                .into_iter()
                .map(Edge::from)
                .collect(),
        };
        let content = make(&mut state, graph)?;
        output.write(state.graphs.add_node(graph, content, after).as_raw())
    }
}

impl Graphs {
    /// Returns a child node with a copy of `child`, which must not be the graph itself.
    pub(crate) fn child(
        &mut self,
        graph: Id<Graph>,
        child: Pointer<CUgraph_st>,
    ) -> Result<Content> {
        self.check_copyable(child)?;
        let child = self.graph(child)?;
        if child == graph {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(Content::Child(self.clone_graph(child, None)))
    }

    /// Checks that a graph, if it exists, has no nodes that cannot be copied.
    pub(crate) fn check_copyable(&self, graph: Pointer<CUgraph_st>) -> Result {
        match self.graph(graph) {
            Ok(graph)
                if self.allocates(graph)
                    || self.has_conditions(graph)
                    || self.has_condition_handles(graph) =>
            {
                Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if a graph has conditional handles, with nodes or without.
    fn has_condition_handles(&self, graph: Id<Graph>) -> bool {
        self.graphs
            .get(graph)
            .is_some_and(|graph| graph.conditions.handles().next().is_some())
    }

    /// Returns `true` if a graph has memory nodes, which cannot be copied.
    pub(crate) fn allocates(&self, graph: Id<Graph>) -> bool {
        self.graph_nodes(graph)
            .iter()
            .filter_map(|node| self.nodes.get(*node))
            .any(|node| node.content.is_memory())
    }
}

impl State {
    /// Returns a child node that takes ownership of `child`, which must have no other owner.
    pub(crate) fn moved_child(
        &mut self,
        graph: Id<Graph>,
        child: Pointer<CUgraph_st>,
    ) -> Result<Content> {
        let child = self.graphs.graph(child)?;
        let is_owned = self.graphs.get(child).is_some_and(Graph::is_owned);
        if child == graph || !is_owned || self.captures.is_captured_into(child) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(Content::Child(child))
    }
}
