//! The order of nodes that access leased memory, which no borrow protects.
//!
//! A capture has the order of its streams. Operations on captured graphs keep that order, and order nodes that access
//! the same memory if one of them writes it. Work built in safe code is therefore free of races.
//!
//! Within one graph, new work depends on all existing nodes. A child graph is ordered with the surrounding graph
//! through its node. Its own edges cannot express that order, so it is checked, and the work is refused if it is not
//! ordered.

use std::collections::HashSet;
use std::sync::Arc;

use super::kept::{Kept, Resource};
use super::tree::State;
use super::{Edge, Graph, Node};
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

    /// Returns `true` if work that uses `added`, a child graph or captured work, must depend on the nodes of the graph,
    /// whose tree this thread has locked.
    pub(super) fn must_follow(
        &self,
        state: &mut State,
        operation: &'static str,
        added: &Kept,
    ) -> Result<bool> {
        let met = state.met_by(added);
        let (within, elsewhere): (Vec<_>, Vec<_>) = met
            .into_iter()
            .partition(|part| state.is_within(*part, self.number));
        for part in elsewhere {
            if !self.is_in_order_with(state, part)? {
                let reason = "it conflicts with work in another part of the graph on the same memory, and the two are not ordered; make the \
                              node that contains this graph depend on the nodes of that work, or the reverse";
                return Err(Error::argument(operation, reason));
            }
        }
        Ok(!within.is_empty())
    }

    /// Returns `true` if this graph is ordered with a graph of the tree outside of it.
    fn is_in_order_with(&self, state: &mut State, part: u32) -> Result<bool> {
        let mut inner = self.number;
        while let Some((node, outer)) = state.around(inner) {
            if state.is_within(part, outer) {
                // Of the body graphs of one node, only one runs at a time.
                let is_same_node = state.is_within_node(part, node);
                return Ok(is_same_node
                    || Self::of(Arc::clone(&self.tree), outer).is_in_line(state, node)?);
            }
            inner = outer;
        }
        Ok(false)
    }

    /// Returns `true` if every other node comes before or after `node`.
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
        let (after, before) = (
            reached(|edge| (edge.from, edge.to)),
            reached(|edge| (edge.to, edge.from)),
        );
        Ok(nodes
            .iter()
            .all(|other| after.contains(other) || before.contains(other)))
    }
}

impl State {
    /// Returns the graphs whose work conflicts with the accesses of `added`.
    fn met_by(&self, added: &Kept) -> HashSet<u32> {
        if added.leases().next().is_none() {
            return HashSet::new();
        }
        let met = |resource: &Resource| resource.leases().any(|lease| added.disturbs(lease));
        self.each_kept()
            .filter(|(_, resource)| met(resource))
            .map(|(owner, _)| owner)
            .collect()
    }

    /// Returns `true` if a graph is `outer` or is contained in it.
    fn is_within(&self, part: u32, outer: u32) -> bool {
        part == outer
            || self
                .around(part)
                .is_some_and(|(_, around)| self.is_within(around, outer))
    }

    /// Returns `true` if a graph is contained in `node`.
    fn is_within_node(&self, part: u32, node: Node) -> bool {
        self.around(part)
            .is_some_and(|(own, around)| own == node || self.is_within_node(around, node))
    }

    /// Returns an error of `operation` if captured work that writes memory depends on the order of nodes.
    pub(super) fn expect_loose(&self, operation: &'static str) -> Result<()> {
        if !self
            .each_kept()
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
        let (own, within) = match self {
            Self::Lease(lease) => (Some(lease), None),
            Self::Child(kept) => (None, Some(kept)),
            _ => (None, None),
        };
        own.into_iter()
            .chain(within.into_iter().flat_map(Kept::leases))
    }
}

impl Kept {
    /// Returns `true` if a lease conflicts with one kept here: one of the two writes the same memory.
    fn disturbs(&self, lease: &Lease) -> bool {
        self.lease_of(lease)
            .is_some_and(|met| met.is_write() || lease.is_write())
    }

    /// Returns `true` if `self` can replace `old` without a new conflict with the work that uses `whole`.
    pub(super) fn can_replace(&self, old: &Self, whole: &Self) -> bool {
        self.leases().all(|lease| {
            let is_known = old
                .lease_of(lease)
                .is_some_and(|known| known.is_write() || !lease.is_write());
            is_known || !whole.disturbs(lease)
        })
    }
}
