//! Adding nodes to graphs.

use curium_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdeviceptr, CUgraph_st, CUgraphEdgeData, CUgraphNode,
    CUgraphNodeParams,
};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::driver::graph::add::Spot;
use crate::object::graph::content::Content;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
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
        self.lock().graphs.check_copyable(child)?;
        self.add(&Spot::new(node, graph, after, count), |state, graph| {
            state.graphs.child(graph, child)
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
            state.allocation_content(&mut described)
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
            state.free_content(graph, address)
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

impl Call<'_> {
    /// Adds a node of any kind, and writes the output fields of the description.
    fn add_described(&self, spot: &Spot, params: Pointer<CUgraphNodeParams>) -> Result {
        let mut described = params.read()?;
        self.add(spot, |state, graph| {
            state.read_content(graph, &mut described)
        })?;
        params.write(described)
    }
}
