//! Generic descriptions of nodes, and their conversion from and to content.

use std::sync::Arc;

use curium_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, CUDA_KERNEL_NODE_PARAMS,
    CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS_v2, CUctx_st,
    CUgraphChildGraphNodeOwnership, CUgraphConditionalHandle, CUgraphNode_st, CUgraphNodeParams,
    CUgraphNodeType, CUresult,
};

use super::condition::Condition;
use super::{Content, Graph};
use crate::argument::Pointer;
use crate::driver::{Context, Driver, HostFunction, Result, State};
use crate::handle::Id;
use crate::memory::HostPtr;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuGraphNodeSetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUgraphNodeParams>,
    ) -> Result {
        let mut described = params.read()?;
        let mut state = self.lock();
        let (graph, kind) = state
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
        let content = self.read_content(&mut state, graph, &mut described)?;
        state.change(self, node, content)
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

impl Driver {
    /// Returns the content of a generic description, and writes its output fields.
    pub(super) fn read_content(
        &self,
        state: &mut State,
        graph: Id<Graph>,
        params: &mut CUgraphNodeParams,
    ) -> Result<Content> {
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
                self.kernel(state, &params)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => {
                // SAFETY: the type of the description is a copy.
                self.copy_content(state, unsafe { union.memcpy }.copyParams)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => {
                // SAFETY: the type of the description is a fill.
                let set = unsafe { union.memset };
                self.set_content(CUDA_MEMSET_NODE_PARAMS {
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
                        state.child(graph, handle)
                    }
                    CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE => {
                        state.moved_child(graph, handle)
                    }
                    _ => Err(INVALID),
                }
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
                // SAFETY: the type of the description is a record.
                let record = unsafe { union.eventRecord };
                // SAFETY: the event of a description is a handle, as if it were an argument.
                let event = unsafe { Pointer::from_raw(record.event) };
                state
                    .event(event.required()?)
                    .map(|(id, _)| Content::Record(id))
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
                // SAFETY: the type of the description is a wait.
                let wait = unsafe { union.eventWait };
                // SAFETY: the event of a description is a handle, as if it were an argument.
                let event = unsafe { Pointer::from_raw(wait.event) };
                state
                    .event(event.required()?)
                    .map(|(id, _)| Content::Wait(id))
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
                // SAFETY: the type of the description is a conditional node.
                let described = unsafe { &mut union.conditional };
                state.condition(graph, described)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
                // SAFETY: the type of the description is a batch of operations.
                let CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 {
                    ctx,
                    count,
                    paramArray,
                    flags,
                } = unsafe { union.memOp };
                self.batch_content(
                    state,
                    &CUDA_BATCH_MEM_OP_NODE_PARAMS {
                        ctx,
                        count,
                        paramArray,
                        flags,
                    },
                )
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
                let content = self.allocation_content(state, &mut params)?;
                described.dptr = params.dptr;
                Ok(content)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE => {
                // SAFETY: the type of the description is a free node.
                self.free_content(state, graph, unsafe { union.free }.dptr)
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

impl State {
    /// Returns the context of a handle that was created for a graph, or for one that contains it.
    fn condition_context(
        &self,
        graph: Id<Graph>,
        handle: CUgraphConditionalHandle,
    ) -> Option<Id<Context>> {
        let mut graph = self.graphs.get(graph);
        while let Some(current) = graph {
            if let Some(context) = current.conditions.context(handle) {
                return Some(context);
            }
            let parent = current.parent.and_then(|node| self.nodes.get(node));
            graph = parent.and_then(|node| self.graphs.get(node.graph));
        }
        None
    }

    /// Returns a conditional node with empty bodies, whose handles are given to the caller.
    fn condition(
        &mut self,
        graph: Id<Graph>,
        described: &mut curium_sys::CUDA_CONDITIONAL_NODE_PARAMS,
    ) -> Result<Content> {
        let context = self
            .condition_context(graph, described.handle)
            .ok_or(INVALID)?;
        // SAFETY: the context of a description is a handle, as if it were an argument.
        let named: Pointer<CUctx_st> = unsafe { Pointer::from_raw(described.ctx) };
        // As on hardware, the node belongs to the context of its handle.
        let is_foreign = !named.is_null() && Id::from(named) != context;
        if is_foreign || !Condition::allows(described.type_, described.size) {
            return Err(INVALID);
        }
        let bodies: Vec<_> = (0..described.size).map(|_| self.new_graph(None)).collect();
        // As in the driver, the list of bodies is never moved and lives as long as the node.
        let listed: Arc<[HostPtr]> = bodies
            .iter()
            .map(|body| HostPtr(body.as_raw().cast()))
            .collect();
        described.phGraph_out = listed.as_ptr().cast_mut().cast();
        Ok(Content::Condition(Condition {
            handle: described.handle,
            kind: described.type_,
            bodies,
            listed,
        }))
    }
}

impl Content {
    /// Returns the description of the node.
    fn description(&self) -> CUgraphNodeParams {
        let mut described = CUgraphNodeParams {
            type_: self.kind(),
            ..CUgraphNodeParams::default()
        };
        let union = &mut described.__bindgen_anon_1;
        match self {
            // As for a kernel without a function: a library does not report its kernels.
            Self::Empty | Self::Library(_) => {}
            Self::Kernel(kernel) => kernel.describe(union),
            Self::Copy(copy) => union.memcpy.copyParams = copy.described,
            Self::Set(set) => {
                let CUDA_MEMSET_NODE_PARAMS {
                    dst,
                    pitch,
                    value,
                    elementSize,
                    width,
                    height,
                } = set.0;
                union.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
                    dst,
                    pitch,
                    value,
                    elementSize,
                    width,
                    height,
                    ..CUDA_MEMSET_NODE_PARAMS_v2::default()
                };
            }
            Self::Host(host) => (union.host.fn_, union.host.userData) = host.as_raw(),
            Self::Child(graph) => union.graph.graph = graph.as_raw(),
            Self::Record(event) => union.eventRecord.event = event.as_raw(),
            Self::Wait(event) => union.eventWait.event = event.as_raw(),
            Self::Allocate(allocation) => {
                let params = &allocation.params;
                (union.alloc.poolProps, union.alloc.bytesize) = (params.poolProps, params.bytesize);
                union.alloc.dptr = params.dptr;
            }
            Self::Free(address) => union.free.dptr = *address,
            Self::Condition(condition) => {
                (union.conditional.handle, union.conditional.type_) =
                    (condition.handle, condition.kind);
                union.conditional.size = condition.bodies.len() as u32;
                union.conditional.phGraph_out = condition.listed.as_ptr().cast_mut().cast();
            }
            Self::Batch(batch) => {
                let CUDA_BATCH_MEM_OP_NODE_PARAMS {
                    ctx,
                    count,
                    paramArray,
                    flags,
                } = batch.description();
                union.memOp = CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 {
                    ctx,
                    count,
                    paramArray,
                    flags,
                };
            }
        }
        described
    }
}
