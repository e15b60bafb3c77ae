//! Graphs: work that is described before it runs.
//!
//! A graph holds nodes. Each node has its [`Content`] and its dependencies. Instantiation copies
//! all of that into a [`plan`], which can be launched any number of times and no longer depends on
//! the graph.

pub(crate) mod attribute;
pub(crate) mod condition;
pub(crate) mod content;
pub(crate) mod described;
pub(crate) mod edge;
pub(crate) mod executable;
pub(crate) mod memory;
pub(crate) mod object;
pub(crate) mod plan;
pub(crate) mod stale;
pub(crate) mod update;

use std::collections::HashMap;

use curium_sys::{CUgraph_st, CUgraphNode_st};

use crate::handle::{Id, Kind, Object};
use crate::object::graph::condition::Conditions;
use crate::object::graph::content::Content;
use crate::object::graph::edge::Edge;
use crate::object::graph::object::UserObject;

/// A graph: its nodes in the order in which they were added.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Id<Node>>,
    /// The node that owns this graph as its child or body, so that nothing else can destroy it.
    pub(crate) parent: Option<Id<Node>>,
    /// For a clone, the original of each node.
    pub(crate) origins: HashMap<Id<Node>, Id<Node>>,
    /// The retained user objects, with the number of references.
    pub(crate) objects: Vec<(Id<UserObject>, u32)>,
    pub(crate) conditions: Conditions,
    pub(crate) number: u32,
    /// The number of the node that was added last.
    pub(crate) last_node: u32,
}

/// A node of a graph.
pub(crate) struct Node {
    pub(crate) graph: Id<Graph>,
    pub(crate) content: Content,
    pub(crate) after: Vec<Edge>,
    pub(crate) number: u32,
}

impl Object for Graph {
    type Raw = CUgraph_st;
    const KIND: Kind = Kind::Graph;
}

impl Object for Node {
    type Raw = CUgraphNode_st;
    const KIND: Kind = Kind::GraphNode;
}

impl Graph {
    /// Returns `true` if a caller owns the graph, and no node.
    pub(crate) fn is_owned(&self) -> bool {
        self.parent.is_none()
    }
}
