//! Queries of the parameters of nodes, by kind.

use curium_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUevent, CUgraph,
    CUgraphNode_st, CUresult,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::object::graph::Node;
use crate::object::graph::content::Content;
use crate::result::Result;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

impl Call<'_> {
    /// Applies `read` to a node's content. A node of another kind, for which `read` returns `None`,
    /// is an invalid value.
    pub(crate) fn inspect_content<T>(
        &self,
        node: Pointer<CUgraphNode_st>,
        read: impl FnOnce(&Content) -> Option<T>,
    ) -> Result<T> {
        let state = self.lock();
        let (_, Node { content, .. }) = state.graphs.node(node)?;
        read(content).ok_or(INVALID)
    }

    fn kernel_description(&self, node: Pointer<CUgraphNode_st>) -> Result<CUDA_KERNEL_NODE_PARAMS> {
        self.inspect_content(node, |content| match content {
            Content::Kernel(kernel) => Some(kernel.description()),
            _ => None,
        })
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGraphKernelNodeGetParams_v2(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_KERNEL_NODE_PARAMS>,
    ) -> Result {
        params.write(self.kernel_description(node)?)
    }

    pub(crate) fn cuGraphKernelNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_KERNEL_NODE_PARAMS_v1>,
    ) -> Result {
        let kernel = self.kernel_description(node)?;
        params.write(CUDA_KERNEL_NODE_PARAMS_v1 {
            func: kernel.func,
            gridDimX: kernel.gridDimX,
            gridDimY: kernel.gridDimY,
            gridDimZ: kernel.gridDimZ,
            blockDimX: kernel.blockDimX,
            blockDimY: kernel.blockDimY,
            blockDimZ: kernel.blockDimZ,
            sharedMemBytes: kernel.sharedMemBytes,
            kernelParams: kernel.kernelParams,
            extra: kernel.extra,
        })
    }

    pub(crate) fn cuGraphMemcpyNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_MEMCPY3D>,
    ) -> Result {
        params.write(self.inspect_content(node, |content| match content {
            Content::Copy(copy) => Some(copy.described),
            _ => None,
        })?)
    }

    pub(crate) fn cuGraphMemsetNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_MEMSET_NODE_PARAMS>,
    ) -> Result {
        params.write(self.inspect_content(node, |content| match content {
            Content::Set(set) => Some(set.0),
            _ => None,
        })?)
    }

    pub(crate) fn cuGraphHostNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_HOST_NODE_PARAMS>,
    ) -> Result {
        let output = params.required()?;
        let state = self.lock();
        match &state.graphs.node(node)?.1.content {
            Content::Host(host) => {
                let (fn_, userData) = host.as_raw();
                output.write(CUDA_HOST_NODE_PARAMS { fn_, userData })
            }
            _ => Err(INVALID),
        }
    }

    pub(crate) fn cuGraphChildGraphNodeGetGraph(
        &self,
        node: Pointer<CUgraphNode_st>,
        graph: Pointer<CUgraph>,
    ) -> Result {
        let child = self.inspect_content(node, |content| match content {
            Content::Child(child) => Some(*child),
            _ => None,
        })?;
        graph.write(child.as_raw())
    }

    pub(crate) fn cuGraphEventRecordNodeGetEvent(
        &self,
        node: Pointer<CUgraphNode_st>,
        event: Pointer<CUevent>,
    ) -> Result {
        let recorded = self.inspect_content(node, |content| match content {
            Content::Record(event) => Some(*event),
            _ => None,
        })?;
        event.write(recorded.as_raw())
    }

    pub(crate) fn cuGraphEventWaitNodeGetEvent(
        &self,
        node: Pointer<CUgraphNode_st>,
        event: Pointer<CUevent>,
    ) -> Result {
        let awaited = self.inspect_content(node, |content| match content {
            Content::Wait(event) => Some(*event),
            _ => None,
        })?;
        event.write(awaited.as_raw())
    }

    /// Reads the operations. The list belongs to the node, and lives as long as the node has it.
    pub(crate) fn cuGraphBatchMemOpNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
    ) -> Result {
        params.write(self.inspect_content(node, |content| match content {
            Content::Batch(batch) => Some(batch.description()),
            _ => None,
        })?)
    }
}
