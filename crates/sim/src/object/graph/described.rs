//! Generic descriptions of nodes, and their conversion from and to content.

use curium_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2, CUDA_MEMSET_NODE_PARAMS,
    CUDA_MEMSET_NODE_PARAMS_v2, CUgraphNodeParams,
};

use crate::object::graph::content::Content;

impl Content {
    /// Returns the description of the node.
    pub(crate) fn description(&self) -> CUgraphNodeParams {
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
