//! The order of nodes that use the same memory without owning it: what captured work leases, which no borrow watches over.
//!
//! A capture has the order that its streams had. What is made of captured graphs later keeps it, and brings those that use the same memory,
//! one of them to write it, into an order: so work that safe code describes never meets itself.
//!
//! In one graph the later comes after all that is there. Graphs within nodes are in order with what is around them where their node is:
//! no edge of theirs can bring that about, so that it is looked at, and the work refused where it is not so.

use std::collections::HashSet;
use std::sync::Arc;

use super::kept::{Kept, Resource};
use super::tree::State;
use super::{Edge, Graph, Node};
use crate::hazard::Lease;
use crate::{Error, Result};

impl Graph {
    /// Returns the nodes that no other comes after, of a graph whose tree this thread has.
    #[inline]
    pub(super) fn leaves_in(&self, state: &mut State) -> Result<Vec<Node>> {
        let edges = self.edges_in(state)?;
        let mut leaves = self.nodes_in(state)?;
        leaves.retain(|node| edges.iter().all(|edge| edge.from != *node));
        Ok(leaves)
    }

    /// Returns `true` if work that keeps `added`, a child or what was captured, has to come after the nodes of the graph, whose tree this
    /// thread has.
    #[inline]
    pub(super) fn must_follow(&self, state: &mut State, operation: &'static str, added: &Kept) -> Result<bool> {
        let met = state.met_by(added);
        let (within, elsewhere): (Vec<_>, Vec<_>) =
            met.into_iter().partition(|part| state.is_within(*part, self.number));
        for part in elsewhere {
            if !self.is_in_order_with(state, part)? {
                let reason = "it uses memory that work in another part of the graph writes, or the other way round, and nothing \
                              orders the two: the node that this graph is a part of would have to come before or after each other";
                return Err(Error::argument(operation, reason));
            }
        }
        Ok(!within.is_empty())
    }

    /// Returns `true` if this graph is in order with a part of the tree that is not within it.
    #[inline]
    fn is_in_order_with(&self, state: &mut State, part: u32) -> Result<bool> {
        let mut inner = self.number;
        while let Some((node, outer)) = state.around(inner) {
            if state.is_within(part, outer) {
                // Of the graphs within one node only one runs at a time.
                let is_same_node = state.is_within_node(part, node);
                return Ok(is_same_node || Self::of(Arc::clone(&self.tree), outer).is_in_line(state, node)?);
            }
            inner = outer;
        }
        Ok(false)
    }

    /// Returns `true` if every other node comes before or after `node`.
    #[inline]
    fn is_in_line(&self, state: &mut State, node: Node) -> Result<bool> {
        let (edges, nodes) = (self.edges_in(state)?, self.nodes_in(state)?);
        let reached = |ends: fn(&Edge) -> (Node, Node)| {
            let (mut reached, mut left) = (HashSet::from([node]), vec![node]);
            while let Some(last) = left.pop() {
                let next = edges.iter().map(ends).filter(|(from, _)| *from == last);
                left.extend(next.map(|(_, to)| to).filter(|to| reached.insert(*to)));
            }
            reached
        };
        let (after, before) = (reached(|edge| (edge.from, edge.to)), reached(|edge| (edge.to, edge.from)));
        Ok(nodes.iter().all(|other| after.contains(other) || before.contains(other)))
    }
}

impl State {
    /// Returns the graphs with work that uses memory which it or what keeps `added` writes.
    #[inline]
    fn met_by(&self, added: &Kept) -> HashSet<u32> {
        if added.leases().next().is_none() {
            return HashSet::new();
        }
        let met = |resource: &Resource| resource.leases().any(|lease| added.disturbs(lease));
        self.each_kept().filter(|(_, resource)| met(resource)).map(|(owner, _)| owner).collect()
    }

    /// Returns `true` if a graph is `outer` or a part of it.
    #[inline]
    fn is_within(&self, part: u32, outer: u32) -> bool {
        part == outer || self.around(part).is_some_and(|(_, around)| self.is_within(around, outer))
    }

    /// Returns `true` if a graph is a part of `node`.
    #[inline]
    fn is_within_node(&self, part: u32, node: Node) -> bool {
        self.around(part).is_some_and(|(own, around)| own == node || self.is_within_node(around, node))
    }

    /// That the order of nodes may be loosened, which captured work that writes memory depends on.
    #[inline]
    pub(super) fn expect_loose(&self, operation: &'static str) -> Result<()> {
        if !self.each_kept().any(|(_, resource)| resource.leases().any(Lease::is_write)) {
            return Ok(());
        }
        let reason = "the graph has captured work that writes memory, and keeps the order that this depends on";
        Err(Error::argument(operation, reason))
    }
}

impl Resource {
    /// Returns the leases of a node.
    #[inline]
    fn leases(&self) -> impl Iterator<Item = &Lease> {
        let (own, within) = match self {
            Self::Lease(lease) => (Some(lease), None),
            Self::Child(kept) => (None, Some(kept)),
            _ => (None, None),
        };
        own.into_iter().chain(within.into_iter().flat_map(Kept::leases))
    }
}

impl Kept {
    /// Returns `true` if one of the two, a lease and what is kept here, writes memory that the other uses.
    #[inline]
    fn disturbs(&self, lease: &Lease) -> bool {
        self.lease_of(lease).is_some_and(|met| met.is_write() || lease.is_write())
    }

    /// Returns `true` if `self`, in a place that `old` was in, in work that keeps all of `whole`, uses no memory in a way that is new to
    /// the order there.
    #[inline]
    pub(super) fn can_replace(&self, old: &Self, whole: &Self) -> bool {
        self.leases().all(|lease| {
            let is_known = old.lease_of(lease).is_some_and(|known| known.is_write() || !lease.is_write());
            is_known || !whole.disturbs(lease)
        })
    }
}
