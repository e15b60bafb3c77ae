//! Descriptions of graphs in the DOT language.

use std::ffi::c_char;
use std::fmt::Write as _;

use curium_sys::{CUgraph_st, CUresult};

use super::Graph;
use crate::argument::{ConstPointer, Pointer};
use crate::driver::{Driver, Result, State};
use crate::handle::Id;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
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
        let graph = state.graph(graph)?;
        let mut text = String::from("digraph dot {\n");
        state.draw(graph, &mut text);
        text.push_str("}\n");
        std::fs::write(path, text).map_err(|_| CUresult::CUDA_ERROR_OPERATING_SYSTEM)
    }
}

impl State {
    fn draw(&self, graph: Id<Graph>, text: &mut String) {
        let number = self.graphs.get(graph).map_or(0, |graph| graph.number);
        for id in self.graph_nodes(graph) {
            let Some(node) = self.nodes.get(id) else {
                continue;
            };
            let name = dot_name(number, node.number);
            // Writing to a `String` cannot fail.
            writeln!(
                text,
                "{name} [label=\"{} {}\"];",
                node.number,
                node.content.name()
            )
            .unwrap_or_default();
            for edge in &node.after {
                let from = self.nodes.get(edge.from).map_or(0, |from| from.number);
                writeln!(text, "{} -> {name};", dot_name(number, from)).unwrap_or_default();
            }
            node.content
                .parts()
                .into_iter()
                .for_each(|part| self.draw(part, text));
        }
    }
}

/// Returns the identifier of a node.
fn dot_name(graph: u32, node: u32) -> String {
    format!("\"graph_{graph}_node_{node}\"")
}
