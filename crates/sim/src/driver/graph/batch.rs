//! Nodes of operations on single values.

use curium_sys::{CUDA_BATCH_MEM_OP_NODE_PARAMS, CUgraph_st, CUgraphExec_st, CUgraphNode, CUgraphNode_st, CUresult};

use super::Content;
use super::add::Spot;
use crate::argument::{ConstPointer, Pointer, elements};
use crate::driver::{Driver, Result, State};

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
    pub(crate) fn cuGraphAddBatchMemOpNode(
        &self,
        node: Pointer<CUgraphNode>,
        graph: Pointer<CUgraph_st>,
        after: ConstPointer<CUgraphNode>,
        count: usize,
        params: ConstPointer<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
    ) -> Result {
        let params = params.read()?;
        self.add(&Spot { node, graph, after, data: None, count }, |state, _| self.batch_content(state, &params))
    }

    /// The list of operations belongs to the node, and stays for as long as the node has it.
    pub(crate) fn cuGraphBatchMemOpNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
    ) -> Result {
        let place = params.required()?;
        let state = self.lock();
        let Content::Batch(batch) = &state.node(node)?.1.content else {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        };
        place.write(CUDA_BATCH_MEM_OP_NODE_PARAMS {
            ctx: batch.context(),
            count: batch.described().len() as u32,
            paramArray: batch.described().as_ptr().cast_mut(),
            flags: 0,
        })
    }

    pub(crate) fn cuGraphBatchMemOpNodeSetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: ConstPointer<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
    ) -> Result {
        let params = params.read()?;
        let mut state = self.lock();
        let content = self.batch_content(&state, &params)?;
        state.change(node, content)
    }

    pub(crate) fn cuGraphExecBatchMemOpNodeSetParams(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        params: ConstPointer<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
    ) -> Result {
        let params = params.read()?;
        let mut state = self.lock();
        let content = self.batch_content(&state, &params)?;
        state.update(executable, node, content)
    }
}

impl Driver {
    /// A node of operations on values, at least one.
    pub(super) fn batch_content(&self, state: &State, params: &CUDA_BATCH_MEM_OP_NODE_PARAMS) -> Result<Content> {
        // SAFETY: the context of a description is a handle, as if it were an argument.
        let context = self.context_or_current(unsafe { Pointer::from_raw(params.ctx) })?;
        state.usable(context)?;
        if params.count == 0 || params.flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the caller of the C function described this many operations.
        let described = unsafe { elements(params.paramArray.cast_const(), params.count as usize) }?;
        self.batch(described, context).map(Content::Batch)
    }
}
