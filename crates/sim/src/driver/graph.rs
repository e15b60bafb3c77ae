//! Graphs: work that is described before it runs.
//!
//! A graph holds nodes. Each node has its [`Content`] and its dependencies. Instantiation copies all of that into a [`plan`], which can be
//! launched any number of times and no longer depends on the graph.

mod add;
mod attribute;
mod condition;
mod content;
mod described;
mod dot;
mod edge;
mod executable;
mod kind;
mod memory;
mod object;
mod params;
mod plan;
mod shape;
mod stale;
mod update;

use std::collections::HashMap;

use curium_sys::{CUgraph, CUgraph_st, CUgraphNode, CUgraphNode_st, CUgraphNodeType, CUresult};

pub(crate) use self::attribute::Attributes;
pub(crate) use self::condition::Conditions;
pub(crate) use self::content::{Content, Copy3D, Set};
pub(crate) use self::edge::Edge;
pub(crate) use self::executable::Executable;
pub(super) use self::memory::Freed;
pub(crate) use self::memory::{Allocation, GraphMemory};
pub(crate) use self::object::UserObject;
pub(crate) use self::plan::SharedConditions;
pub(crate) use self::stale::AccessedRange;
use crate::argument::{ConstPointer, Pointer, elements};
use crate::driver::{Driver, Result, State};
use crate::handle::{Id, Kind, Object};

/// A graph: its nodes in the order in which they were added.
#[derive(Default)]
pub(crate) struct Graph {
    pub(super) nodes: Vec<Id<Node>>,
    /// The node that owns this graph as its child or body, so that nothing else can destroy it.
    pub(super) parent: Option<Id<Node>>,
    /// For a clone, the original of each node.
    origins: HashMap<Id<Node>, Id<Node>>,
    /// The retained user objects, with the number of references.
    pub(super) objects: Vec<(Id<UserObject>, u32)>,
    pub(super) conditions: Conditions,
    number: u32,
    /// The number of the node that was added last.
    last_node: u32,
}

/// A node of a graph.
pub(crate) struct Node {
    pub(super) graph: Id<Graph>,
    pub(super) content: Content,
    pub(super) after: Vec<Edge>,
    pub(super) number: u32,
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

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuGraphCreate(&self, graph: Pointer<CUgraph>, flags: u32) -> Result {
        let output = graph.required()?;
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        output.write(self.lock().new_graph(None).as_raw())
    }

    pub(crate) fn cuGraphDestroy(&self, graph: Pointer<CUgraph_st>) -> Result {
        let mut state = self.lock();
        let id = state.graph(graph)?;
        if state.is_captured_into(id)
            || state
                .graphs
                .get(id)
                .is_some_and(|graph| graph.parent.is_some())
        {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        state.remove_graph(id);
        self.call_destructors(state);
        Ok(())
    }

    pub(crate) fn cuGraphClone(
        &self,
        clone: Pointer<CUgraph>,
        graph: Pointer<CUgraph_st>,
    ) -> Result {
        let output = clone.required()?;
        let mut state = self.lock();
        let id = state.graph(graph)?;
        if state.allocates(id) || state.has_conditions(id) {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        output.write(state.clone_graph(id, None).as_raw())
    }

    pub(crate) fn cuGraphNodeFindInClone(
        &self,
        found: Pointer<CUgraphNode>,
        original: Pointer<CUgraphNode_st>,
        clone: Pointer<CUgraph_st>,
    ) -> Result {
        let output = found.required()?;
        let state = self.lock();
        let (original, _) = state.node(original)?;
        let clone = state.graph(clone)?;
        let node = state
            .graphs
            .get(clone)
            .and_then(|clone| clone.origins.get(&original))
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        output.write(node.as_raw())
    }

    pub(crate) fn cuGraphGetId(&self, graph: Pointer<CUgraph_st>, id: Pointer<u32>) -> Result {
        let state = self.lock();
        let graph = state.graph(graph)?;
        id.write(state.graphs.get(graph).map_or(0, |graph| graph.number))
    }

    pub(crate) fn cuGraphNodeGetType(
        &self,
        node: Pointer<CUgraphNode_st>,
        kind: Pointer<CUgraphNodeType>,
    ) -> Result {
        let kind = kind.required()?;
        kind.write(self.lock().node(node)?.1.content.kind())
    }

    pub(crate) fn cuGraphNodeGetContainingGraph(
        &self,
        node: Pointer<CUgraphNode_st>,
        graph: Pointer<CUgraph>,
    ) -> Result {
        graph.write(self.lock().node(node)?.1.graph.as_raw())
    }

    pub(crate) fn cuGraphNodeGetLocalId(
        &self,
        node: Pointer<CUgraphNode_st>,
        id: Pointer<u32>,
    ) -> Result {
        id.write(self.lock().node(node)?.1.number)
    }

    pub(crate) fn cuGraphNodeGetToolsId(
        &self,
        node: Pointer<CUgraphNode_st>,
        id: Pointer<u64>,
    ) -> Result {
        let state = self.lock();
        let (_, node) = state.node(node)?;
        let graph = state.graphs.get(node.graph).map_or(0, |graph| graph.number);
        id.write(u64::from(graph) << 32 | u64::from(node.number))
    }

    pub(crate) fn cuGraphDestroyNode(&self, node: Pointer<CUgraphNode_st>) -> Result {
        let mut state = self.lock();
        let (id, node) = state.node(node)?;
        let graph = node.graph;
        // As on hardware, the nodes of a graph with memory stay.
        if state.allocates(graph) {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        if state.is_captured_into(graph) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        for other in state.graph_nodes(graph) {
            if let Some(other) = state.nodes.get_mut(other) {
                other.after.retain(|edge| edge.from != id);
            }
        }
        if let Some(graph) = state.graphs.get_mut(graph) {
            graph.nodes.retain(|other| *other != id);
        }
        state.remove_node(id);
        Ok(())
    }
}

impl State {
    /// Returns a live graph.
    pub(crate) fn graph(&self, raw: Pointer<CUgraph_st>) -> Result<Id<Graph>> {
        let id = Id::from(raw);
        if self.graphs.contains(id) {
            Ok(id)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }

    /// Returns a live node.
    pub(crate) fn node(&self, raw: Pointer<CUgraphNode_st>) -> Result<(Id<Node>, &Node)> {
        let id = Id::from(raw);
        self.nodes
            .get(id)
            .map(|node| (id, node))
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    pub(crate) fn new_graph(&mut self, parent: Option<Id<Node>>) -> Id<Graph> {
        let number = self.next_number() as u32;
        self.graphs.insert(Graph {
            parent,
            number,
            ..Graph::default()
        })
    }

    /// Adds a node that depends on others of the graph.
    pub(crate) fn add_node(
        &mut self,
        graph: Id<Graph>,
        content: Content,
        after: Vec<Edge>,
    ) -> Id<Node> {
        let number = self.graphs.get_mut(graph).map_or(0, |graph| {
            graph.last_node += 1;
            graph.last_node
        });
        let parts = content.parts();
        let id = self.nodes.insert(Node {
            graph,
            content,
            after,
            number,
        });
        for part in parts {
            if let Some(part) = self.graphs.get_mut(part) {
                part.parent = Some(id);
            }
        }
        if let Some(graph) = self.graphs.get_mut(graph) {
            graph.nodes.push(id);
        }
        id
    }

    /// Replaces the content of a node by one of the same kind.
    fn change(
        &mut self,
        driver: &Driver,
        node: Pointer<CUgraphNode_st>,
        content: Content,
    ) -> Result {
        let (id, node) = self.node(node)?;
        if node.content.kind() != content.kind() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let content = driver.inherit_attributes(&node.content, content)?;
        self.replace(id, content);
        Ok(())
    }

    /// Replaces the content of a node, and the graphs that belong to it.
    pub(super) fn replace(&mut self, node: Id<Node>, content: Content) {
        for part in content.parts() {
            if let Some(part) = self.graphs.get_mut(part) {
                part.parent = Some(node);
            }
        }
        let before = self
            .nodes
            .get_mut(node)
            .map(|node| std::mem::replace(&mut node.content, content));
        for part in before.iter().flat_map(Content::parts) {
            self.remove_graph(part);
        }
    }

    pub(super) fn graph_nodes(&self, graph: Id<Graph>) -> Vec<Id<Node>> {
        self.graphs
            .get(graph)
            .map(|graph| graph.nodes.clone())
            .unwrap_or_default()
    }

    /// Returns a deep copy of a graph, as the part of a node or on its own.
    pub(super) fn clone_graph(
        &mut self,
        original: Id<Graph>,
        parent: Option<Id<Node>>,
    ) -> Id<Graph> {
        let clone = self.new_graph(parent);
        let mut origins = HashMap::new();
        for from in self.graph_nodes(original) {
            let Some(node) = self.nodes.get(from) else {
                continue;
            };
            let content = node.content.clone();
            let after = node.after.clone();
            let content = self.clone_content(content);
            let to = self.add_node(clone, content, after);
            origins.insert(from, to);
        }
        for node in self.graph_nodes(clone) {
            let after = self
                .nodes
                .get_mut(node)
                .into_iter()
                .flat_map(|node| &mut node.after);
            for edge in after {
                edge.from = origins.get(&edge.from).copied().unwrap_or(edge.from);
            }
        }
        let objects = self
            .graphs
            .get(original)
            .map(|graph| graph.objects.clone())
            .unwrap_or_default();
        self.retain_objects(&objects);
        let conditions = self
            .graphs
            .get(original)
            .map(|graph| graph.conditions.clone())
            .unwrap_or_default();
        if let Some(clone) = self.graphs.get_mut(clone) {
            (clone.origins, clone.objects, clone.conditions) = (origins, objects, conditions);
        }
        clone
    }

    /// Returns the same content with its own child graphs.
    fn clone_content(&mut self, mut content: Content) -> Content {
        for part in content.parts_mut() {
            *part = self.clone_graph(*part, None);
        }
        content
    }

    pub(super) fn remove_graph(&mut self, id: Id<Graph>) {
        let Some(graph) = self.graphs.remove(id) else {
            return;
        };
        for node in graph.nodes {
            self.remove_node(node);
        }
        self.release_objects(&graph.objects);
    }

    fn remove_node(&mut self, id: Id<Node>) {
        let Some(node) = self.nodes.remove(id) else {
            return;
        };
        for part in node.content.parts() {
            self.remove_graph(part);
        }
    }

    /// Returns the nodes of a graph that the caller of a C function listed.
    pub(super) fn members(
        &self,
        graph: Id<Graph>,
        nodes: ConstPointer<CUgraphNode>,
        count: usize,
    ) -> Result<Vec<Id<Node>>> {
        // SAFETY: the caller of the C function passed `count` nodes.
        let nodes = unsafe { elements(nodes.as_ptr(), count) }?;
        nodes
            .iter()
            .map(|raw| {
                // SAFETY: a node is a handle, as if it were an argument.
                let (id, node) = self.node(unsafe { Pointer::from_raw(*raw) })?;
                if node.graph == graph {
                    Ok(id)
                } else {
                    Err(CUresult::CUDA_ERROR_INVALID_VALUE)
                }
            })
            .collect()
    }
}
