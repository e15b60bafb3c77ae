//! The order of nodes that use the same memory without owning it: what captured work leases, which no borrow watches over.
//!
//! A capture has the order that its streams had. What is made of captured graphs later keeps it, and brings those that use the same memory,
//! one of them to write it, into an order: so work that safe code describes never meets itself.

use super::tree::{Kept, Resource, State};
use super::{Graph, Node};
use crate::hazard::Lease;
use crate::{Error, Result};

impl Graph {
    /// The nodes that no other comes after, of a graph whose tree this thread has.
    #[inline]
    pub(super) fn leaves_in(&self, state: &mut State) -> Result<Vec<Node>> {
        let edges = self.edges_in(state)?;
        let mut leaves = self.nodes_in(state)?;
        leaves.retain(|node| edges.iter().all(|edge| edge.from != *node));
        Ok(leaves)
    }
}

impl State {
    /// Whether a child that keeps `child` has to come behind the nodes that `graph` has.
    #[inline]
    pub(super) fn must_follow(&self, operation: &'static str, graph: u32, child: &Kept) -> Result<bool> {
        if child.leases().next().is_none() {
            return Ok(false);
        }
        let met = |resource: &Resource| resource.leases().any(|lease| child.disturbs(lease));
        let mut owners = self.each_kept().filter(|(_, resource)| met(resource)).map(|(owner, _)| owner).peekable();
        let must_follow = owners.peek().is_some();
        if owners.any(|owner| owner != graph) {
            let reason = "the child uses memory that work in another part of the graph writes, or the other way round: only \
                          work of one part is put in order";
            return Err(Error::argument(operation, reason));
        }
        Ok(must_follow)
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
    /// The leases of a node.
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
    /// Whether one of the two, a lease and what is kept here, writes memory that the other uses.
    #[inline]
    fn disturbs(&self, lease: &Lease) -> bool {
        self.lease_of(lease).is_some_and(|met| met.is_write() || lease.is_write())
    }

    /// Whether `self`, in a place that `old` was in, in work that keeps all of `whole`, uses no memory in a way that is new to the order
    /// there.
    #[inline]
    pub(super) fn can_replace(&self, old: &Self, whole: &Self) -> bool {
        self.leases().all(|lease| {
            let is_known = old.lease_of(lease).is_some_and(|known| known.is_write() || !lease.is_write());
            is_known || !whole.disturbs(lease)
        })
    }
}
