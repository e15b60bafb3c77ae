//! Generic descriptions of nodes, and their conversion from and to content.

use curium_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, CUDA_KERNEL_NODE_PARAMS,
    CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS, CUgraphChildGraphNodeOwnership,
    CUgraphNode_st, CUgraphNodeParams, CUgraphNodeType, CUresult,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::driver::graph::described::INVALID;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::host_function::HostFunction;
use crate::object::graph::Graph;
use crate::object::graph::content::Content;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGraphNodeSetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUgraphNodeParams>,
    ) -> Result {
        let mut described = params.read()?;
        let mut state = self.lock();
        let (graph, kind) = state
            .graphs
            .node(node)
            .map(|(_, node)| (node.graph, node.content.kind()))?;
        let is_changeable = !matches!(
            kind,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL
                | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC
                | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE
        );
        if described.type_ != kind || !is_changeable {
            return Err(INVALID);
        }
        let content = state.read_content(graph, &mut described)?;
        state.graphs.change(self, node, content)
    }

    pub(crate) fn cuGraphNodeSetParams_v2(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUgraphNodeParams>,
    ) -> Result {
        self.cuGraphNodeSetParams(node, params)
    }

    pub(crate) fn cuGraphNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUgraphNodeParams>,
    ) -> Result {
        params.write(self.inspect_content(node, |content| Some(content.description()))?)
    }
}

impl Locked<'_> {
    /// Returns the content of a generic description, and writes its output fields.
    pub(crate) fn read_content(
        &mut self,
        graph: Id<Graph>,
        params: &mut CUgraphNodeParams,
    ) -> Result<Content> {
        let driver = self.driver();
        let union = &mut params.__bindgen_anon_1;
        match params.type_ {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY => Ok(Content::Empty),
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => {
                // SAFETY: the type of the description is a kernel node.
                let kernel = unsafe { union.kernel };
                let params = CUDA_KERNEL_NODE_PARAMS {
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
                    kern: kernel.kern,
                    ctx: kernel.ctx,
                };
                self.described_kernel(&params)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => {
                // SAFETY: the type of the description is a copy.
                self.copy_content(unsafe { union.memcpy }.copyParams)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => {
                // SAFETY: the type of the description is a fill.
                let set = unsafe { union.memset };
                driver.operands().set_content(CUDA_MEMSET_NODE_PARAMS {
                    dst: set.dst,
                    pitch: set.pitch,
                    value: set.value,
                    elementSize: set.elementSize,
                    width: set.width,
                    height: set.height,
                })
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST => {
                // SAFETY: the type of the description is a host function.
                let host = unsafe { union.host };
                HostFunction::new(host.fn_, host.userData).map(Content::Host)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => {
                // SAFETY: the type of the description is a child.
                let child = unsafe { union.graph };
                // SAFETY: the graph of a description is a handle, as if it were an argument.
                let handle = unsafe { Pointer::from_raw(child.graph) };
                match child.ownership {
                    CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE => {
                        self.graphs.child(graph, handle)
                    }
                    CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE => {
                        self.moved_child(graph, handle)
                    }
                    _ => Err(INVALID),
                }
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
                // SAFETY: the type of the description is a record.
                let record = unsafe { union.eventRecord };
                // SAFETY: the event of a description is a handle, as if it were an argument.
                let event = unsafe { Pointer::from_raw(record.event) };
                self.contexts
                    .valid_event(event.required()?)
                    .map(|(id, _)| Content::Record(id))
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
                // SAFETY: the type of the description is a wait.
                let wait = unsafe { union.eventWait };
                // SAFETY: the event of a description is a handle, as if it were an argument.
                let event = unsafe { Pointer::from_raw(wait.event) };
                self.contexts
                    .valid_event(event.required()?)
                    .map(|(id, _)| Content::Wait(id))
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
                // SAFETY: the type of the description is a conditional node.
                let described = unsafe { &mut union.conditional };
                self.graphs.condition(graph, described)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
                // SAFETY: the type of the description is a batch of operations.
                let described = unsafe { union.memOp };
                let CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 {
                    ctx,
                    count,
                    paramArray,
                    flags,
                } = described;
                self.batch_content(&CUDA_BATCH_MEM_OP_NODE_PARAMS {
                    ctx,
                    count,
                    paramArray,
                    flags,
                })
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
                // SAFETY: the type of the description is an allocation.
                let described = unsafe { &mut union.alloc };
                let mut params = CUDA_MEM_ALLOC_NODE_PARAMS {
                    poolProps: described.poolProps,
                    accessDescs: described.accessDescs,
                    accessDescCount: described.accessDescCount,
                    bytesize: described.bytesize,
                    dptr: 0,
                };
                let content = self.allocation_content(&mut params)?;
                described.dptr = params.dptr;
                Ok(content)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE => {
                // SAFETY: the type of the description is a free node.
                self.free_content(graph, unsafe { union.free }.dptr)
            }
            // Semaphores of other interfaces do not exist here.
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL
            | CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => {
                Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
            }
            _ => Err(INVALID),
        }
    }
}
