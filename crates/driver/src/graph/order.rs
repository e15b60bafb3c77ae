//! The order of nodes that access leased memory, which no borrow protects.
//!
//! A capture has the order of its streams. Operations on captured graphs keep that order, and order
//! nodes that access the same memory if one of them writes it. Work built in safe code is therefore
//! free of races.
//!
//! Within one graph, new work depends on all existing nodes. A child graph is ordered with the
//! surrounding graph through its node. Its own edges cannot express that order, so it is checked,
//! and the work is refused if it is not ordered.

use std::collections::HashSet;
use std::sync::Arc;

use super::Graph;
use super::edge::Edge;
use super::node::Node;
use super::resource::{Resource, ResourceSet};
use super::tree::State;
use crate::hazard::Lease;
use crate::{Error, Result};

impl Graph {
    /// Returns the nodes without dependents, of a graph whose tree this thread has locked.
    pub(super) fn leaves_in(&self, state: &mut State) -> Result<Vec<Node>> {
        let edges = self.edges_in(state)?;
        let mut leaves = self.nodes_in(state)?;
        leaves.retain(|node| edges.iter().all(|edge| edge.from != *node));
        Ok(leaves)
    }

    /// Returns `true` if work that uses `added`, a child graph or captured work, must depend on the
    /// nodes of the graph, whose tree this thread has locked.
    pub(super) fn must_follow(
        &self,
        state: &mut State,
        operation: &'static str,
        added: &ResourceSet,
    ) -> Result<bool> {
        let (within, elsewhere): (Vec<_>, Vec<_>) = state
            .conflicting_graphs(added)
            .into_iter()
            .partition(|graph| state.is_within(*graph, self.number));
        for graph in elsewhere {
            if !self.is_ordered_with(state, graph)? {
                let reason = "it conflicts with work in another part of the graph on the same memory, and the two are not ordered; make the \
                              node that contains this graph depend on the nodes of that work, or the reverse";
                return Err(Error::argument(operation, reason));
            }
        }
        Ok(!within.is_empty())
    }

    /// Returns `true` if this graph is ordered with a graph of the tree outside of it.
    fn is_ordered_with(&self, state: &mut State, other: u32) -> Result<bool> {
        let mut inner = self.number;
        while let Some((node, outer)) = state.parent(inner) {
            if state.is_within(other, outer) {
                // Of the body graphs of one node, only one runs at a time.
                let is_same_node = state.is_within_node(other, node);
                return Ok(is_same_node
                    || Self::in_tree(Arc::clone(&self.tree), outer)
                        .is_ordered_with_all(state, node)?);
            }
            inner = outer;
        }
        Ok(false)
    }

    /// Returns `true` if every other node comes before or after `node`.
    fn is_ordered_with_all(&self, state: &mut State, node: Node) -> Result<bool> {
        let edges = self.edges_in(state)?;
        let nodes = self.nodes_in(state)?;
        let after = reachable(node, &edges, |edge| (edge.from, edge.to));
        let before = reachable(node, &edges, |edge| (edge.to, edge.from));
        Ok(nodes
            .iter()
            .all(|other| after.contains(other) || before.contains(other)))
    }
}

/// Returns `start` and all nodes that a path of edges, in the direction given by `ends`, connects
/// it to.
fn reachable(start: Node, edges: &[Edge], ends: fn(&Edge) -> (Node, Node)) -> HashSet<Node> {
    let mut reached = HashSet::from([start]);
    let mut pending = vec![start];
    while let Some(node) = pending.pop() {
        for (from, to) in edges.iter().map(ends) {
            if from == node && reached.insert(to) {
                pending.push(to);
            }
        }
    }
    reached
}

impl State {
    /// Returns the graphs whose work conflicts with the accesses of `added`.
    fn conflicting_graphs(&self, added: &ResourceSet) -> HashSet<u32> {
        if added.leases().next().is_none() {
            return HashSet::new();
        }
        self.resources_by_graph()
            .filter(|(_, resource)| resource.leases().any(|lease| added.conflicts_with(lease)))
            .map(|(graph, _)| graph)
            .collect()
    }

    /// Returns `true` if a graph is `outer` or is contained in it.
    fn is_within(&self, graph: u32, outer: u32) -> bool {
        graph == outer
            || self
                .parent(graph)
                .is_some_and(|(_, parent)| self.is_within(parent, outer))
    }

    /// Returns `true` if a graph is contained in `node`.
    fn is_within_node(&self, graph: u32, node: Node) -> bool {
        self.parent(graph).is_some_and(|(container, parent)| {
            container == node || self.is_within_node(parent, node)
        })
    }

    /// Returns an error of `operation` if captured work that writes memory depends on the order of
    /// nodes.
    pub(super) fn check_reorderable(&self, operation: &'static str) -> Result<()> {
        if !self
            .resources_by_graph()
            .any(|(_, resource)| resource.leases().any(Lease::is_write))
        {
            return Ok(());
        }
        let reason = "the order of the nodes cannot change, because the graph has captured work that writes memory";
        Err(Error::argument(operation, reason))
    }
}

impl Resource {
    /// Returns the leases of a node.
    fn leases(&self) -> impl Iterator<Item = &Lease> {
        let (lease, child) = match self {
            Self::Lease(lease) => (Some(lease), None),
            Self::Child(resources) => (None, Some(resources)),
            _ => (None, None),
        };
        lease
            .into_iter()
            .chain(child.into_iter().flat_map(ResourceSet::leases))
    }
}

impl ResourceSet {
    /// Returns `true` if a lease conflicts with one kept here: one of the two writes the same
    /// memory.
    fn conflicts_with(&self, lease: &Lease) -> bool {
        self.matching_lease(lease)
            .is_some_and(|existing| existing.is_write() || lease.is_write())
    }

    /// Returns `true` if `self` can replace `old` without a new conflict with the work that uses
    /// `whole`.
    pub(super) fn can_replace(&self, old: &Self, whole: &Self) -> bool {
        self.leases().all(|lease| {
            let is_covered = old
                .matching_lease(lease)
                .is_some_and(|previous| previous.is_write() || !lease.is_write());
            is_covered || !whole.conflicts_with(lease)
        })
    }
}
