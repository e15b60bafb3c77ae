//! The state that a graph shares with its child and body graphs: a lock, since the driver's graph
//! functions are not thread-safe, and the nodes with the objects that they keep alive.
//!
//! A node handle of the driver dangles once the node is destroyed, and may be reused. A
//! [`Node`](super::node::Node) is therefore a number. Each use looks up the handle here, or finds
//! that the node was removed.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use curium_sys::{CUgraph, CUgraph_st, CUgraphNode, CUgraphNode_st};

use super::NewNode;
use super::node::Node;
use super::resource::{Resource, ResourceSet};
use crate::base::exclusive::{Exclusive, ExclusiveGuard};
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::call;
use crate::{Context, Driver, Error, Result};

/// A root graph with its child and body graphs.
pub(crate) struct Tree {
    raw: Handle<CUgraph_st>,
    identity: u64,
    // Declared before the context, which dropping the kept objects may require.
    state: Exclusive<State>,
    context: Context,
}

/// The graphs and nodes of a tree.
pub(super) struct State {
    identity: u64,
    /// The graphs by number, the outermost first; `None` for a graph that was removed with its
    /// node.
    graphs: Vec<Option<Handle<CUgraph_st>>>,
    /// The nodes by number; `None` for a removed node.
    nodes: Vec<Option<Entry>>,
    /// The number of the node with this handle.
    numbers: HashMap<usize, u32>,
    /// The objects kept for nodes that were captured or already existed, by graph number.
    inherited: HashMap<u32, ResourceSet>,
    /// The number of references that each graph retains to a user object, by graph number and
    /// address. The driver does not detect excess releases.
    objects: HashMap<(u32, usize), u32>,
    /// The reason why all graphs of the tree refuse every use, if they do.
    refusal: Option<&'static str>,
}

/// A node that is in a graph.
struct Entry {
    raw: Handle<CUgraphNode_st>,
    /// The numbers of the graphs contained in the node.
    subgraphs: Vec<u32>,
    /// The graph that the node is in.
    graph: u32,
    resource: Option<Resource>,
}

/// The identity of the next tree. Raw handles are no identities, since drivers reuse them.
static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(1);

/// The number of the outermost graph.
pub(super) const ROOT: u32 = 0;

impl Tree {
    /// Takes ownership of `raw`, whose nodes use the objects in `inherited`.
    pub(super) fn new(context: &Context, raw: CUgraph, inherited: ResourceSet) -> Self {
        let identity = NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed);
        let graphs = vec![Some(Handle::new(raw))];
        let state = State {
            identity,
            graphs,
            nodes: Vec::new(),
            numbers: HashMap::new(),
            inherited: HashMap::from([(ROOT, inherited)]),
            objects: HashMap::new(),
            refusal: None,
        };
        Self {
            raw: Handle::new(raw),
            identity,
            state: Exclusive::new(state),
            context: context.clone(),
        }
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn identity(&self) -> u64 {
        self.identity
    }

    /// Locks all graphs of the tree.
    ///
    /// # Errors
    ///
    /// An argument error if a call observer operates on the tree whose operation it observes.
    pub(super) fn lock(&self) -> Result<ExclusiveGuard<'_, State>> {
        self.state.acquire("Graph")
    }

    /// Returns the state without locking: the mutable borrow guarantees exclusive access.
    pub(super) fn state(&mut self) -> &mut State {
        self.state.get_mut()
    }

    pub(super) fn destroy(&mut self) -> Result<()> {
        // SAFETY: the graph is live, no other code has its handle, and it is not used again once it
        // is destroyed.
        unsafe { call!(self.context.driver(), cuGraphDestroy(self.raw.raw())) }.map_err(
            |error| error.about_handle("graph", self.raw.raw(), self.context.device().as_raw()),
        )?;
        self.raw.clear();
        Ok(())
    }

    /// Returns the raw handle without destroying the graph.
    pub(super) fn release_raw(&mut self) -> CUgraph {
        let raw = self.raw.raw();
        self.raw.clear();
        raw
    }
}

impl State {
    /// Returns the raw handle of a graph of the tree.
    pub(super) fn graph(&self, operation: &'static str, number: u32) -> Result<CUgraph> {
        self.check_usable(operation)?;
        match self.graphs.get(number as usize) {
            Some(Some(raw)) => Ok(raw.raw()),
            _ => Err(Error::argument(
                operation,
                "the node that contains this graph was removed",
            )),
        }
    }

    /// Returns the raw handle of a node of the tree.
    pub(super) fn node(&self, operation: &'static str, node: Node) -> Result<CUgraphNode> {
        self.check_usable(operation)?;
        self.entry(operation, node).map(|entry| entry.raw.raw())
    }

    /// Returns the raw handle of a node of one graph of the tree.
    pub(super) fn member(
        &self,
        operation: &'static str,
        graph: u32,
        node: Node,
    ) -> Result<CUgraphNode> {
        self.check_usable(operation)?;
        self.member_in_use(operation, graph, node)
    }

    /// Returns the raw handle of a node, for the operation that blocks every other use.
    pub(super) fn member_in_use(
        &self,
        operation: &'static str,
        graph: u32,
        node: Node,
    ) -> Result<CUgraphNode> {
        let entry = self.entry(operation, node)?;
        if entry.graph == graph {
            return Ok(entry.raw.raw());
        }
        Err(Error::argument(
            operation,
            format!("{node} is in another graph"),
        ))
    }

    fn entry(&self, operation: &'static str, node: Node) -> Result<&Entry> {
        if node.tree != self.identity {
            return Err(Error::argument(
                operation,
                format!("{node} is in another graph"),
            ));
        }
        let entry = self
            .nodes
            .get(node.number as usize)
            .and_then(Option::as_ref);
        entry.ok_or_else(|| Error::argument(operation, format!("{node} was removed")))
    }

    fn check_usable(&self, operation: &'static str) -> Result<()> {
        self.refusal
            .map_or(Ok(()), |reason| Err(Error::argument(operation, reason)))
    }

    /// Refuses every use of the graphs of the tree for this reason, or allows it again.
    pub(super) fn refuse(&mut self, reason: Option<&'static str>) {
        self.refusal = reason;
    }

    /// Returns the number of references that a graph holds to the user object at `address`.
    pub(super) fn user_object_count(&mut self, graph: u32, address: usize) -> &mut u32 {
        self.objects.entry((graph, address)).or_default()
    }

    /// Returns the user objects that a graph retains, as entries of an outermost graph.
    pub(super) fn user_objects(&self, graph: u32) -> HashMap<(u32, usize), u32> {
        self.objects
            .iter()
            .filter(|((owner, _), _)| *owner == graph)
            .map(|((_, address), count)| ((ROOT, *address), *count))
            .collect()
    }

    /// Records that the outermost graph retains these user objects.
    pub(super) fn set_user_objects(&mut self, objects: HashMap<(u32, usize), u32>) {
        self.objects = objects;
    }

    /// Adds the node that `call` creates, which depends on the nodes in `after` and uses
    /// `resource`.
    pub(super) fn add_node(
        &mut self,
        driver: &Driver,
        graph: u32,
        operation: &'static str,
        after: &[Node],
        resource: Option<Resource>,
        call: impl FnOnce(&Driver, NewNode) -> Result<()>,
    ) -> Result<Node> {
        let raw = self.graph(operation, graph)?;
        let after = after
            .iter()
            .map(|node| self.member(operation, graph, *node))
            .collect::<Result<Vec<_>>>()?;
        let mut node = std::ptr::null_mut();
        call(
            driver,
            NewNode {
                node: &raw mut node,
                graph: raw,
                after: after.as_ptr(),
                count: after.len(),
            },
        )?;
        Ok(self.add(graph, node, resource))
    }

    /// Returns the node with this raw handle, registering it if it is new.
    pub(super) fn register(&mut self, graph: u32, raw: CUgraphNode) -> Node {
        match self.numbers.get(&raw.addr()) {
            Some(number) => Node {
                tree: self.identity,
                number: *number,
            },
            None => self.add(graph, raw, None),
        }
    }

    /// Returns the node with this raw handle, if it is registered.
    pub(super) fn find_node(&self, raw: CUgraphNode) -> Option<Node> {
        self.numbers.get(&raw.addr()).map(|number| Node {
            tree: self.identity,
            number: *number,
        })
    }

    pub(super) fn add(&mut self, graph: u32, raw: CUgraphNode, resource: Option<Resource>) -> Node {
        let number = self.nodes.len() as u32;
        self.nodes.push(Some(Entry {
            raw: Handle::new(raw),
            subgraphs: Vec::new(),
            graph,
            resource,
        }));
        self.numbers.insert(raw.addr(), number);
        Node {
            tree: self.identity,
            number,
        }
    }

    /// Registers `raw` as a graph contained in a node and returns its number. Returns the existing
    /// number if it is registered already.
    pub(super) fn add_subgraph(&mut self, node: Node, raw: CUgraph) -> u32 {
        let existing = self
            .graphs
            .iter()
            .position(|graph| graph.as_ref().is_some_and(|graph| graph.raw() == raw));
        if let Some(number) = existing {
            return number as u32;
        }
        let number = self.graphs.len() as u32;
        self.graphs.push(Some(Handle::new(raw)));
        if let Some(Some(entry)) = self.nodes.get_mut(node.number as usize) {
            entry.subgraphs.push(number);
        }
        number
    }

    /// Returns the node that contains a graph, and the graph of that node.
    pub(super) fn parent(&self, subgraph: u32) -> Option<(Node, u32)> {
        let mut entries = self
            .nodes
            .iter()
            .zip(0..)
            .filter_map(|(entry, number)| Some((entry.as_ref()?, number)));
        let (entry, number) = entries.find(|(entry, _)| entry.subgraphs.contains(&subgraph))?;
        Some((
            Node {
                tree: self.identity,
                number,
            },
            entry.graph,
        ))
    }

    /// Returns the object that a node keeps, if any.
    pub(super) fn resource(&self, node: Node) -> Option<&Resource> {
        self.nodes
            .get(node.number as usize)?
            .as_ref()?
            .resource
            .as_ref()
    }

    /// Replaces the object that a node keeps and returns the old one, which may be dropped only
    /// after the lock is released.
    #[must_use]
    pub(super) fn replace_resource(
        &mut self,
        node: Node,
        resource: Option<Resource>,
    ) -> Option<Resource> {
        let entry = self.nodes.get_mut(node.number as usize)?.as_mut()?;
        std::mem::replace(&mut entry.resource, resource)
    }

    /// Removes a node with the graphs that it contains. The returned objects may be dropped only
    /// after the lock is released.
    #[must_use]
    pub(super) fn remove(&mut self, node: Node) -> Vec<Resource> {
        let entry = self
            .nodes
            .get_mut(node.number as usize)
            .and_then(Option::take);
        let Some(entry) = entry else {
            return Vec::new();
        };
        self.numbers.remove(&entry.raw.raw().addr());
        let mut resources: Vec<_> = entry.resource.into_iter().collect();
        for subgraph in entry.subgraphs {
            self.graphs[subgraph as usize] = None;
            resources.extend(self.inherited.remove(&subgraph).map(Resource::Child));
            for number in 0..self.nodes.len() {
                let entry = self.nodes[number].as_ref();
                if entry.is_some_and(|entry| entry.graph == subgraph) {
                    resources.extend(self.remove(Node {
                        tree: self.identity,
                        number: number as u32,
                    }));
                }
            }
        }
        resources
    }

    /// Returns all kept objects, each with the graph whose nodes use it.
    pub(super) fn resources_by_graph(&self) -> impl Iterator<Item = (u32, &Resource)> {
        let inherited = self
            .inherited
            .iter()
            .flat_map(|(graph, resources)| resources.iter().map(|resource| (*graph, resource)));
        let nodes = self
            .nodes
            .iter()
            .flatten()
            .filter_map(|entry| Some((entry.graph, entry.resource.as_ref()?)));
        inherited.chain(nodes)
    }

    /// Keeps objects for captured nodes of a graph.
    pub(super) fn add_resources(&mut self, graph: u32, resources: &ResourceSet) {
        self.inherited.entry(graph).or_default().extend(resources);
    }

    /// Replaces the objects kept for the outermost graph, whose nodes were captured again. The
    /// returned objects may be dropped only after the lock is released.
    #[must_use]
    pub(super) fn replace_resources(
        &mut self,
        resources: ResourceSet,
    ) -> (Option<ResourceSet>, Vec<Resource>) {
        let replaced = self
            .nodes
            .iter_mut()
            .flatten()
            .filter(|entry| entry.graph == ROOT)
            .filter_map(|entry| entry.resource.take())
            .collect();
        (self.inherited.insert(ROOT, resources), replaced)
    }

    /// Returns the objects that all nodes of the tree keep.
    pub(super) fn resources(&self) -> ResourceSet {
        let mut resources = ResourceSet::default();
        for (_, resource) in self.resources_by_graph() {
            resources.add(resource);
        }
        resources
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.raw)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.destroy());
        }
    }
}
