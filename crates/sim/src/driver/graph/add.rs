//! Adding nodes to graphs.

use curium_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdeviceptr, CUgraph_st, CUgraphEdgeData, CUgraphNode,
    CUgraphNodeParams, CUresult,
};

use super::{Content, Edge, Graph};
use crate::argument::{ConstPointer, Pointer};
use crate::driver::{Driver, Result, State};
use crate::handle::Id;

/// The graph and the dependencies of a new node, as passed by the caller.
pub(super) struct Spot {
    node: Pointer<CUgraphNode>,
    graph: Pointer<CUgraph_st>,
    after: ConstPointer<CUgraphNode>,
    data: Option<ConstPointer<CUgraphEdgeData>>,
    count: usize,
}

impl Spot {
    pub(super) fn new(
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

    fn with_data(self, data: ConstPointer<CUgraphEdgeData>) -> Self {
        Self {
            data: Some(data),
            ..self
        }
    }
}

impl Driver {
    /// Adds the node that `make` describes.
    pub(super) fn add(
        &self,
        spot: &Spot,
        make: impl FnOnce(&mut State, Id<Graph>) -> Result<Content>,
    ) -> Result {
        let output = spot.node.required()?;
        let mut state = self.lock();
        let graph = state.graph(spot.graph)?;
        let after = match spot.data {
            Some(data) => state.edges(graph, spot.after, data, spot.count)?,
            None => state
                .members(graph, spot.after, spot.count)?
                .into_iter()
                .map(Edge::from)
                .collect(),
        };
        let content = make(&mut state, graph)?;
        output.write(state.add_node(graph, content, after).as_raw())
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuGraphAddEmptyNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
    ) -> Result {
        self.add(&Spot::new(node, graph, after, count), |_, _| {
            Ok(Content::Empty)
        })
    }

    pub(crate) fn cuGraphAddChildGraphNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        child: Pointer<CUgraph_st>,
    ) -> Result {
        self.lock().expect_copyable(child)?;
        self.add(&Spot::new(node, graph, after, count), |state, graph| {
            state.child(graph, child)
        })
    }

    pub(crate) fn cuGraphAddMemAllocNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        params: Pointer<CUDA_MEM_ALLOC_NODE_PARAMS>,
    ) -> Result {
        let mut described = params.read()?;
        self.add(&Spot::new(node, graph, after, count), |state, _| {
            self.allocation_content(state, &mut described)
        })?;
        params.write(described)
    }

    pub(crate) fn cuGraphAddMemFreeNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        address: CUdeviceptr,
    ) -> Result {
        self.add(&Spot::new(node, graph, after, count), |state, graph| {
            self.free_content(state, graph, address)
        })
    }

    pub(crate) fn cuGraphAddNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        params: Pointer<CUgraphNodeParams>,
    ) -> Result {
        self.add_described(&Spot::new(node, graph, after, count), params)
    }

    pub(crate) fn cuGraphAddNode_v2(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        data: ConstPointer<CUgraphEdgeData>,
        count: usize,
        params: Pointer<CUgraphNodeParams>,
    ) -> Result {
        self.add_described(
            &Spot::new(node, graph, after, count).with_data(data),
            params,
        )
    }

    pub(crate) fn cuGraphAddNode_v3(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        data: ConstPointer<CUgraphEdgeData>,
        count: usize,
        params: Pointer<CUgraphNodeParams>,
    ) -> Result {
        self.add_described(
            &Spot::new(node, graph, after, count).with_data(data),
            params,
        )
    }
}

impl Driver {
    /// Adds a node of any kind, and writes the output fields of the description.
    fn add_described(&self, spot: &Spot, params: Pointer<CUgraphNodeParams>) -> Result {
        let mut described = params.read()?;
        self.add(spot, |state, graph| {
            self.read_content(state, graph, &mut described)
        })?;
        params.write(described)
    }
}

impl State {
    /// Returns a child node with a copy of `child`, which must not be the graph itself.
    pub(super) fn child(
        &mut self,
        graph: Id<Graph>,
        child: Pointer<CUgraph_st>,
    ) -> Result<Content> {
        self.expect_copyable(child)?;
        let child = self.graph(child)?;
        if child == graph {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(Content::Child(self.clone_graph(child, None)))
    }

    /// Returns a child node that takes ownership of `child`, which must have no other owner.
    pub(super) fn moved_child(
        &mut self,
        graph: Id<Graph>,
        child: Pointer<CUgraph_st>,
    ) -> Result<Content> {
        let child = self.graph(child)?;
        let is_owned = self.graphs.get(child).is_some_and(Graph::is_owned);
        if child == graph || !is_owned || self.is_captured_into(child) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(Content::Child(child))
    }

    /// Checks that a graph, if it exists, has no nodes that cannot be copied.
    fn expect_copyable(&self, graph: Pointer<CUgraph_st>) -> Result {
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
    pub(super) fn allocates(&self, graph: Id<Graph>) -> bool {
        self.graph_nodes(graph)
            .iter()
            .filter_map(|node| self.nodes.get(*node))
            .any(|node| node.content.is_memory())
    }
}
