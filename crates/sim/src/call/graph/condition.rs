//! Conditional nodes, which run their bodies depending on a value.

use curium_sys::{CUctx_st, CUgraph_st, CUgraphConditionalHandle, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::call::context::named_context;
use crate::object::graph::condition::Value;
use crate::result::Result;

const ASSIGN_DEFAULT: u32 = 1;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGraphConditionalHandleCreate(
        &self,
        handle: Pointer<CUgraphConditionalHandle>,
        graph: Pointer<CUgraph_st>,
        context: Pointer<CUctx_st>,
        default: u32,
        flags: u32,
    ) -> Result {
        let output = handle.required()?;
        if flags & !ASSIGN_DEFAULT != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let context = named_context(context)?;
        let mut state = self.lock();
        state.contexts.valid_context(context)?;
        let graph = state.graphs.graph(graph)?;
        let handle = state.next_number();
        let value = Value {
            handle,
            context,
            value: 0,
            is_assigned_at_launch: flags & ASSIGN_DEFAULT != 0,
            default,
        };
        if let Some(graph) = state.graphs.get_mut(graph) {
            graph.conditions.0.push(value);
        }
        output.write(handle)
    }
}
