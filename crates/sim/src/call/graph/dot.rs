//! Descriptions of graphs in the DOT language.

use std::ffi::c_char;

use curium_sys::{CUgraph_st, CUresult};

use crate::argument::{ConstPointer, Pointer};
use crate::call::Call;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGraphDebugDotPrint(
        &self,
        graph: Pointer<CUgraph_st>,
        path: ConstPointer<c_char>,
        _flags: u32,
    ) -> Result {
        let path = path
            .text()?
            .to_str()
            .map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let state = self.lock();
        let graph = state.graphs.graph(graph)?;
        let mut text = String::from("digraph dot {\n");
        state.graphs.draw(graph, &mut text);
        text.push_str("}\n");
        std::fs::write(path, text).map_err(|_| CUresult::CUDA_ERROR_OPERATING_SYSTEM)
    }
}
