//! Edges of graphs: the dependencies of nodes.

use curium_sys::CUgraphEdgeData;

use crate::handle::Id;
use crate::object::graph::Node;

/// A dependency of a node.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) from: Id<Node>,
    pub(crate) data: CUgraphEdgeData,
}

impl Edge {
    /// Creates an edge without data.
    pub(crate) fn from(node: Id<Node>) -> Self {
        Self {
            from: node,
            data: CUgraphEdgeData::default(),
        }
    }
}
