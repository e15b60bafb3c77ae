//! SVG pictures of graphs.

use std::collections::HashMap;
use std::fmt::Write;

use super::Graph;
use super::edge::{Edge, EdgeKind};
use super::kernel::node_kernel_name;
use super::node::{Node, NodeKind};
use super::resource::Resource;
use crate::Result;

/// The size of a node's box, and the spacing around it, in SVG units.
const WIDTH: usize = 160;
const HEIGHT: usize = 36;
const ACROSS: usize = 24;
const DOWN: usize = 36;

/// The maximum number of characters of a name in its box.
const LETTERS: usize = 20;

/// The layout of a picture: the layer of each node, and its position in the layer.
struct Layout {
    positions: HashMap<Node, (usize, usize)>,
    layers: usize,
    /// The number of nodes in the widest layer.
    widest: usize,
}

impl Graph {
    /// Returns a drawing of the graph as SVG. Each node is below its dependencies and shows its
    /// kind and kernel; programmatic edges are dashed. Child and body graphs are not shown; draw
    /// them separately.
    ///
    /// Drivers before CUDA 12.3 do not report the names of captured kernels, which are labeled
    /// "kernel".
    ///
    /// CUDA: `cuGraphGetNodes`, `cuGraphGetEdges_v2`, `cuGraphNodeGetType`; for a captured kernel
    /// `cuGraphKernelNodeGetParams_v2` and `cuFuncGetName` or `cuKernelGetName`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn to_svg(&self) -> Result<String> {
        let nodes = self.nodes()?;
        let edges = self.edges()?;
        let labels = nodes
            .iter()
            .map(|node| self.label(*node))
            .collect::<Result<Vec<_>>>()?;
        let layout = Layout::new(&nodes, &edges);
        let (width, height) = layout.size();
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n\
             <defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">\
             <polygon points=\"0,0 8,4 0,8\" fill=\"#667\"/></marker></defs>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        );
        edges
            .iter()
            .for_each(|edge| layout.draw_edge(&mut svg, edge));
        nodes
            .iter()
            .zip(&labels)
            .for_each(|(node, label)| layout.draw_node(&mut svg, *node, label));
        svg.push_str("</svg>\n");
        Ok(svg)
    }

    /// Returns the label of a node.
    fn label(&self, node: Node) -> Result<String> {
        let kind = self.kind(node)?;
        let state = self.tree.lock()?;
        if let Some(Resource::Kernel(kernel)) = state.resource(node) {
            return Ok(kernel.name.to_string());
        }
        let name = match kind {
            NodeKind::Kernel => node_kernel_name(
                self.driver(),
                state.member("Graph::to_svg", self.number, node)?,
            )?,
            _ => None,
        };
        Ok(name.unwrap_or_else(|| kind.to_string()))
    }
}

impl Layout {
    /// Puts each node below the lowest of its dependencies. Nodes of a cycle, which have no such
    /// layer, stay where they are after as many rounds as there are nodes.
    fn new(nodes: &[Node], edges: &[Edge]) -> Self {
        let mut layer: HashMap<Node, usize> = nodes.iter().map(|node| (*node, 0)).collect();
        for _ in nodes {
            let mut is_settled = true;
            for edge in edges {
                let below = layer
                    .get(&edge.from)
                    .map_or(0, |from| from + 1)
                    .min(nodes.len());
                if let Some(to) = layer.get_mut(&edge.to).filter(|to| **to < below) {
                    (*to, is_settled) = (below, false);
                }
            }
            if is_settled {
                break;
            }
        }
        let mut filled = vec![0; nodes.len() + 1];
        let mut positions = HashMap::new();
        for node in nodes {
            let layer = layer.get(node).copied().unwrap_or_default();
            positions.insert(*node, (layer, filled[layer]));
            filled[layer] += 1;
        }
        let layers = filled
            .iter()
            .rposition(|count| *count > 0)
            .map_or(0, |last| last + 1);
        Self {
            positions,
            layers,
            widest: filled.into_iter().max().unwrap_or_default(),
        }
    }

    fn size(&self) -> (usize, usize) {
        (
            ACROSS + self.widest * (WIDTH + ACROSS),
            DOWN + self.layers * (HEIGHT + DOWN),
        )
    }

    /// Returns the upper left corner of a node's box.
    fn corner(&self, node: Node) -> (usize, usize) {
        let (layer, place) = self.positions.get(&node).copied().unwrap_or_default();
        (
            ACROSS + place * (WIDTH + ACROSS),
            DOWN + layer * (HEIGHT + DOWN),
        )
    }

    fn draw_edge(&self, svg: &mut String, edge: &Edge) {
        let dashes = if edge.data.kind == EdgeKind::Full {
            ""
        } else {
            " stroke-dasharray=\"4 3\""
        };
        let path = self.path(edge);
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"#667\" marker-end=\"url(#end)\"{dashes}/>"
        );
    }

    /// Returns the path of an edge: straight to the next layer, otherwise between the columns,
    /// where no box hides it.
    fn path(&self, edge: &Edge) -> String {
        let ((from_x, from_y), (to_x, to_y)) = (self.corner(edge.from), self.corner(edge.to));
        let lane = from_x + WIDTH + ACROSS / 2;
        let from_x = from_x + WIDTH / 2;
        let from_y = from_y + HEIGHT;
        let to_x = to_x + WIDTH / 2;
        if to_y <= from_y + DOWN {
            let middle = from_y.midpoint(to_y);
            return format!("M{from_x} {from_y} C{from_x} {middle} {to_x} {middle} {to_x} {to_y}");
        }
        let enter = from_y + DOWN;
        let leave = to_y - DOWN;
        let above = from_y + DOWN / 2;
        let below = to_y - DOWN / 2;
        format!(
            "M{from_x} {from_y} C{from_x} {above} {lane} {above} {lane} {enter} V{leave} \
             C{lane} {below} {to_x} {below} {to_x} {to_y}"
        )
    }

    fn draw_node(&self, svg: &mut String, node: Node, label: &str) {
        let (x, y) = self.corner(node);
        let center = x + WIDTH / 2;
        let base = y + HEIGHT / 2 + 4;
        let is_long = label.chars().count() > LETTERS;
        let shown: String = label
            .chars()
            .take(if is_long { LETTERS - 1 } else { LETTERS })
            .collect();
        let shown = escaped(&shown);
        let ellipsis = if is_long { "…" } else { "" };
        let whole = escaped(label);
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<g><title>{node}: {whole}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\" \
             fill=\"#eef3fa\" stroke=\"#446\"/><text x=\"{center}\" y=\"{base}\">{shown}{ellipsis}</text></g>"
        );
    }
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::edge::EdgeData;
    use super::*;

    fn node(number: u32) -> Node {
        Node { tree: 1, number }
    }

    fn edge(from: u32, to: u32) -> Edge {
        Edge {
            from: node(from),
            to: node(to),
            data: EdgeData::new(),
        }
    }

    #[test]
    fn node_is_below_its_lowest_dependency() {
        let nodes = [0, 1, 2, 3].map(node);
        let layout = Layout::new(&nodes, &[edge(0, 1), edge(1, 3), edge(0, 3), edge(0, 2)]);
        let positions = nodes.map(|node| layout.positions[&node]);
        assert_eq!(positions, [(0, 0), (1, 0), (1, 1), (2, 0)]);
        assert_eq!((layout.layers, layout.widest), (3, 2));
    }

    #[test]
    fn edge_across_layers_is_drawn_between_the_columns() {
        let nodes = [0, 1, 2].map(node);
        let layout = Layout::new(&nodes, &[edge(0, 1), edge(1, 2), edge(0, 2)]);
        let lane = ACROSS + WIDTH + ACROSS / 2;
        assert!(
            layout.path(&edge(0, 2)).contains(&format!(" {lane} ")),
            "{}",
            layout.path(&edge(0, 2))
        );
        assert!(!layout.path(&edge(0, 1)).contains('V'));
    }

    #[test]
    fn circle_is_drawn_all_the_same() {
        let nodes = [0, 1].map(node);
        let layout = Layout::new(&nodes, &[edge(0, 1), edge(1, 0)]);
        assert!(layout.layers <= 3, "{}", layout.layers);
    }

    #[test]
    fn kernel_names_do_not_end_the_text() {
        assert_eq!(escaped("f<T&>(a)"), "f&lt;T&amp;&gt;(a)");
    }
}
