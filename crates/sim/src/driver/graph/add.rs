//! Adding nodes to graphs.

use curium_sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEM_ALLOC_NODE_PARAMS,
    CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUctx_st, CUdeviceptr, CUevent_st, CUgraph_st, CUgraphEdgeData,
    CUgraphNode, CUgraphNodeParams, CUresult,
};

use super::{Content, Edge, Graph};
use crate::argument::{ConstPointer, Pointer};
use crate::driver::{Driver, HostFunction, Result, State};
use crate::handle::Id;

/// Where a node is added, as a caller said it.
pub(super) struct Spot {
    pub(super) node: Pointer<CUgraphNode>,
    pub(super) graph: Pointer<CUgraph_st>,
    pub(super) after: ConstPointer<CUgraphNode>,
    pub(super) data: Option<ConstPointer<CUgraphEdgeData>>,
    pub(super) count: usize,
}

impl Driver {
    /// Adds the node that `make` describes.
    pub(super) fn add(&self, spot: &Spot, make: impl FnOnce(&mut State, Id<Graph>) -> Result<Content>) -> Result {
        let place = spot.node.required()?;
        let mut state = self.lock();
        let graph = state.graph(spot.graph)?;
        let after = match spot.data {
            Some(data) => state.edges(graph, spot.after, data, spot.count)?,
            None => state.members(graph, spot.after, spot.count)?.into_iter().map(Edge::from).collect(),
        };
        let content = make(&mut state, graph)?;
        place.write(state.add_node(graph, content, after).as_raw())
    }
}

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
    pub(crate) fn cuGraphAddEmptyNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
    ) -> Result {
        self.add(&Spot { node, graph, after, data: None, count }, |_, _| Ok(Content::Empty))
    }

    pub(crate) fn cuGraphAddKernelNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        params: ConstPointer<CUDA_KERNEL_NODE_PARAMS_v1>,
    ) -> Result {
        let params = params.read()?;
        self.add(&Spot { node, graph, after, data: None, count }, |state, _| self.kernel_v1(state, &params))
    }

    pub(crate) fn cuGraphAddKernelNode_v2(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        params: ConstPointer<CUDA_KERNEL_NODE_PARAMS>,
    ) -> Result {
        let params = params.read()?;
        self.add(&Spot { node, graph, after, data: None, count }, |state, _| self.kernel(state, &params))
    }

    pub(crate) fn cuGraphAddMemcpyNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        copy: ConstPointer<CUDA_MEMCPY3D>,
        context: Pointer<CUctx_st>,
    ) -> Result {
        let copy = copy.read()?;
        self.add(&Spot { node, graph, after, data: None, count }, |state, _| {
            state.usable(self.context_or_current(context)?)?;
            self.copy_content(state, copy)
        })
    }

    pub(crate) fn cuGraphAddMemsetNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        set: ConstPointer<CUDA_MEMSET_NODE_PARAMS>,
        context: Pointer<CUctx_st>,
    ) -> Result {
        let set = set.read()?;
        self.add(&Spot { node, graph, after, data: None, count }, |state, _| {
            state.usable(self.context_or_current(context)?)?;
            self.set_content(set)
        })
    }

    pub(crate) fn cuGraphAddHostNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        params: ConstPointer<CUDA_HOST_NODE_PARAMS>,
    ) -> Result {
        let params = params.read()?;
        self.add(&Spot { node, graph, after, data: None, count }, |_, _| {
            HostFunction::new(params.fn_, params.userData).map(Content::Host)
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
        self.add(&Spot { node, graph, after, data: None, count }, |state, graph| state.child(graph, child))
    }

    pub(crate) fn cuGraphAddEventRecordNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        event: Pointer<CUevent_st>,
    ) -> Result {
        self.add(&Spot { node, graph, after, data: None, count }, |state, _| {
            self.event_of(state, event).map(Content::Record)
        })
    }

    pub(crate) fn cuGraphAddEventWaitNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        event: Pointer<CUevent_st>,
    ) -> Result {
        self.add(&Spot { node, graph, after, data: None, count }, |state, _| {
            self.event_of(state, event).map(Content::Wait)
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
        self.add(&Spot { node, graph, after, data: None, count }, |state, _| {
            let content = self.allocation_content(state.home(self.current()?), described)?;
            if let Content::Allocate(allocation) = &content {
                described.dptr = allocation.params.dptr;
            }
            Ok(content)
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
        self.add(&Spot { node, graph, after, data: None, count }, |state, graph| state.free_content(graph, address))
    }

    pub(crate) fn cuGraphAddNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        params: Pointer<CUgraphNodeParams>,
    ) -> Result {
        self.add_described(&Spot { node, graph, after, data: None, count }, params)
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
        self.add_described(&Spot { node, graph, after, data: Some(data), count }, params)
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
        self.add_described(&Spot { node, graph, after, data: Some(data), count }, params)
    }
}

impl Driver {
    /// Adds a node of any kind, and writes what the driver chose into the description.
    fn add_described(&self, spot: &Spot, params: Pointer<CUgraphNodeParams>) -> Result {
        let mut described = params.read()?;
        self.add(spot, |state, graph| self.content_of(state, graph, &mut described))?;
        params.write(described)
    }
}

impl State {
    /// A child node with a copy of `child`, which must not be the graph itself.
    pub(super) fn child(&mut self, graph: Id<Graph>, child: Pointer<CUgraph_st>) -> Result<Content> {
        let child = self.graph(child)?;
        if child == graph || self.allocates(child) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(Content::Child(self.clone_graph(child, None)))
    }

    /// Whether a graph has memory nodes, which cannot be copied.
    pub(super) fn allocates(&self, graph: Id<Graph>) -> bool {
        self.nodes_of(graph).iter().filter_map(|node| self.nodes.get(*node)).any(|node| node.content.is_memory())
    }
}
