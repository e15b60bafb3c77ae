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

impl PartialEq for Edge {
    fn eq(&self, other: &Self) -> bool {
        self.from == other.from && ports_and_type(&self.data) == ports_and_type(&other.data)
    }
}

/// Returns `true` if edge data is that of a full dependency, which need not be passed.
pub(crate) fn is_default(data: &CUgraphEdgeData) -> bool {
    ports_and_type(data) == (0, 0, 0)
}

/// Returns the data of an edge without the bytes that are reserved for the driver.
fn ports_and_type(data: &CUgraphEdgeData) -> (u8, u8, u8) {
    (data.from_port, data.to_port, data.type_)
}
