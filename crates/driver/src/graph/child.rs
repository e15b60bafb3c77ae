//! Child graph nodes, and clones of graphs.

use std::sync::Arc;

use super::node::Found;
use super::node::{ChildNode, Node, TypedNode};
use super::resource::Resource;
use super::tree::State;
use super::{Graph, NewNode};
use crate::call;
use crate::{Error, Result};

impl Graph {
    /// Adds a child graph node with a copy of `child` in its current state, depending on the nodes
    /// in `after`. If captured work of both graphs accesses the same memory and one of them writes
    /// it, the node depends on all existing nodes.
    ///
    /// CUDA: `cuGraphAddChildGraphNode`.
    ///
    /// # Errors
    ///
    /// An argument error if the child belongs to another context or driver or to the same graph, if
    /// a node in `after` belongs to another graph or was removed, or if the child conflicts with
    /// unordered work in a parent graph; `CUDA_ERROR_INVALID_VALUE` if the child allocates memory,
    /// `CUDA_ERROR_NOT_SUPPORTED` if it has conditional nodes.
    #[doc(alias = "cuGraphAddChildGraphNode")]
    #[doc(alias = "cudaGraphAddChildGraphNode")]
    pub fn add_child(&mut self, after: &[Node], child: &Self) -> Result<ChildNode> {
        let operation = "Graph::add_child";
        let driver = self.driver();
        let added = self.lock_both(operation, child, |state, other| {
            let raw = other.graph(operation, child.number)?;
            let resources = other.resources();
            let must_follow = self.must_follow(state, operation, &resources)?;
            let mut dependencies = if must_follow { self.leaves_in(state)? } else { Vec::new() };
            dependencies.retain(|leaf| !after.contains(leaf));
            dependencies.extend(after);
            let resource = Some(Resource::Child(resources));
            state.add_node(driver, self.number, operation, &dependencies, resource, |driver, arguments| {
                let NewNode {
                    node,
                    graph,
                    after,
                    count,
                } = arguments;
                // SAFETY: both graphs and the nodes are live and belong to this driver, and this
                // thread has exclusive access to both graphs.
                unsafe {
                    call!(driver, cuGraphAddChildGraphNode(node, graph, after, count, raw) creates arguments.created())
                }
            })
        });
        added.map(ChildNode)
    }

    /// Returns the graph embedded in a child graph node. Its nodes can be modified, but not added
    /// or removed.
    ///
    /// CUDA: `cuGraphChildGraphNodeGetGraph`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphChildGraphNodeGetGraph")]
    #[doc(alias = "cudaGraphChildGraphNodeGetGraph")]
    pub fn child(&self, node: ChildNode) -> Result<Self> {
        let mut state = self.tree.lock()?;
        let raw = state.member("Graph::child", self.number, *node)?;
        let mut graph = std::ptr::null_mut();
        // SAFETY: the node is live, and `graph` is valid for writes.
        unsafe {
            call!(self.driver(), cuGraphChildGraphNodeGetGraph(raw, &raw mut graph) creates graph)
        }?;
        let number = state.add_subgraph(*node, graph);
        Ok(Self::in_tree(Arc::clone(&self.tree), number))
    }

    /// Clones the graph. [`Graph::find`] maps nodes of the original to nodes of the clone.
    ///
    /// CUDA: `cuGraphClone`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver, for example for a graph that allocates memory or has
    /// conditional nodes.
    #[doc(alias = "cuGraphClone")]
    #[doc(alias = "cudaGraphClone")]
    pub fn try_clone(&self) -> Result<Self> {
        let state = self.tree.lock()?;
        let graph = state.graph("Graph::try_clone", self.number)?;
        let mut clone = std::ptr::null_mut();
        // SAFETY: the graph is live, `clone` is valid for writes, and the lock gives this thread
        // exclusive access to the graph.
        unsafe { call!(self.driver(), cuGraphClone(&raw mut clone, graph) creates clone) }?;
        let clone = Self::owning(self.context(), clone, state.resources());
        clone
            .tree
            .lock()?
            .set_user_objects(state.user_objects(self.number));
        Ok(clone)
    }

    /// Returns the node of this clone that corresponds to a node of `original`.
    ///
    /// CUDA: `cuGraphNodeFindInClone`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if this is not a clone of `original`, or the node was added
    /// later; an argument error if the node does not belong to `original`.
    #[doc(alias = "cuGraphNodeFindInClone")]
    #[doc(alias = "cudaGraphNodeFindInClone")]
    pub fn find<N: TypedNode>(&self, original: &Self, node: &N) -> Result<N> {
        let operation = "Graph::find";
        let counterpart = self.lock_both(operation, original, |state, other| {
            let raw = other.member(operation, original.number, **node)?;
            let clone = state.graph(operation, self.number)?;
            let mut counterpart = std::ptr::null_mut();
            // SAFETY: the node and the clone are live, `counterpart` is valid for writes, and this
            // thread has exclusive access to both graphs.
            unsafe { call!(self.driver(), cuGraphNodeFindInClone(&raw mut counterpart, raw, clone) creates counterpart) }?;
            Ok(state.register(self.number, counterpart))
        });
        counterpart.map(|counterpart| node.at(Found(counterpart)))
    }

    /// Runs `use_both` with the states of two graphs of one context that are in different trees;
    /// otherwise returns an error of `operation`.
    pub(super) fn lock_both<T>(
        &self,
        operation: &'static str,
        other: &Self,
        use_both: impl FnOnce(&mut State, &State) -> Result<T>,
    ) -> Result<T> {
        self.driver().check_same(other.driver(), operation)?;
        if self.context().as_raw() != other.context().as_raw() {
            return Err(Error::argument(
                operation,
                "context mismatch (the graphs belong to different contexts)",
            ));
        }
        if Arc::ptr_eq(&self.tree, &other.tree) {
            return Err(Error::argument(
                operation,
                "both graphs are the same, or parts of one graph",
            ));
        }
        // Locks the older tree first, to avoid a deadlock.
        if self.tree.identity() < other.tree.identity() {
            let mut state = self.tree.lock()?;
            return use_both(&mut state, &*other.tree.lock()?);
        }
        let other = other.tree.lock()?;
        use_both(&mut *self.tree.lock()?, &other)
    }
}
