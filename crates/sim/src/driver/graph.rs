//! The driver's part in graphs.
//!
//! A graph holds nodes. Each node has its [`Content`] and its dependencies. Instantiation copies
//! all of that into a [`plan`], which can be launched any number of times and no longer depends on
//! the graph.

pub(crate) mod add;
pub(crate) mod attribute;
pub(crate) mod content;
pub(crate) mod described;
pub(crate) mod dot;
pub(crate) mod edge;
pub(crate) mod executable;
pub(crate) mod memory;
pub(crate) mod object;
pub(crate) mod plan;
pub(crate) mod stale;
pub(crate) mod update;

use std::collections::HashMap;

use curium_sys::{CUgraph_st, CUgraphNode, CUgraphNode_st, CUresult};

use crate::argument::{ConstPointer, Pointer, elements};
use crate::driver::Driver;
use crate::driver::context::Numbers;
use crate::handle::{Id, Table};
use crate::host_function::HostFunction;
use crate::live::{LiveHandles, LiveObject};
use crate::object::graph::content::Content;
use crate::object::graph::edge::Edge;
use crate::object::graph::executable::Executable;
use crate::object::graph::object::UserObject;
use crate::object::graph::{Graph, Node};
use crate::result::Result;

/// The graphs of a driver with their nodes, executables and user objects.
pub(crate) struct Graphs {
    graphs: Table<Graph>,
    nodes: Table<Node>,
    executables: Table<Executable>,
    objects: Table<UserObject>,
    /// The destructors of user objects without references.
    destructors: Vec<HostFunction>,
    numbers: Numbers,
}

impl Graphs {
    pub(crate) fn new(numbers: Numbers) -> Self {
        Self {
            graphs: Table::new(),
            nodes: Table::new(),
            executables: Table::new(),
            objects: Table::new(),
            destructors: Vec::new(),
            numbers,
        }
    }

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

    pub(crate) fn get(&self, id: Id<Graph>) -> Option<&Graph> {
        self.graphs.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: Id<Graph>) -> Option<&mut Graph> {
        self.graphs.get_mut(id)
    }

    pub(crate) fn get_node(&self, id: Id<Node>) -> Option<&Node> {
        self.nodes.get(id)
    }

    pub(crate) fn get_node_mut(&mut self, id: Id<Node>) -> Option<&mut Node> {
        self.nodes.get_mut(id)
    }

    pub(crate) fn count_live(&self, live: &mut LiveHandles) {
        live.graphs = self
            .graphs
            .iter()
            .filter(|(_, graph)| graph.is_owned())
            .count() as u64;
        live.executable_graphs = self.executables.iter().count() as u64;
        live.user_objects = self.objects.iter().count() as u64;
    }

    pub(crate) fn live_objects(&self) -> impl Iterator<Item = LiveObject> {
        let graphs = self.graphs.live_objects("graph", Graph::is_owned, |_| 0);
        let executables = self
            .executables
            .live_objects("executable graph", |_| true, |_| 0);
        let objects = self.objects.live_objects("user object", |_| true, |_| 0);
        graphs.chain(executables).chain(objects)
    }

    pub(crate) fn new_graph(&mut self, parent: Option<Id<Node>>) -> Id<Graph> {
        let number = self.numbers.next() as u32;
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
    pub(crate) fn change(
        &mut self,
        driver: &Driver,
        node: Pointer<CUgraphNode_st>,
        content: Content,
    ) -> Result {
        let (id, node) = self.node(node)?;
        if node.content.kind() != content.kind() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let content = driver
            .devices()
            .inherit_attributes(&node.content, content)?;
        self.replace(id, content);
        Ok(())
    }

    /// Replaces the content of a node, and the graphs that belong to it.
    pub(crate) fn replace(&mut self, node: Id<Node>, content: Content) {
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

    pub(crate) fn graph_nodes(&self, graph: Id<Graph>) -> Vec<Id<Node>> {
        self.graphs
            .get(graph)
            .map(|graph| graph.nodes.clone())
            .unwrap_or_default()
    }

    /// Returns a deep copy of a graph, as the part of a node or on its own.
    pub(crate) fn clone_graph(
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

    pub(crate) fn remove_graph(&mut self, id: Id<Graph>) {
        let Some(graph) = self.graphs.remove(id) else {
            return;
        };
        for node in graph.nodes {
            self.remove_node(node);
        }
        self.release_objects(&graph.objects);
    }

    pub(crate) fn remove_node(&mut self, id: Id<Node>) {
        let Some(node) = self.nodes.remove(id) else {
            return;
        };
        for part in node.content.parts() {
            self.remove_graph(part);
        }
    }

    /// Returns the nodes of a graph that the caller of a C function listed.
    pub(crate) fn members(
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
