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

/// Returns `true` if edge data is that of a full dependency, which need not be passed.
pub(crate) fn is_default(data: &CUgraphEdgeData) -> bool {
    // The other bytes are reserved for the driver.
    (data.from_port, data.to_port, data.type_) == (0, 0, 0)
}
