//! Descriptions of graphs in the DOT language.

use std::fmt::Write as _;

use crate::driver::graph::Graphs;
use crate::handle::Id;
use crate::object::graph::Graph;

impl Graphs {
    pub(crate) fn draw(&self, graph: Id<Graph>, text: &mut String) {
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
