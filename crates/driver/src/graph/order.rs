//! The order of nodes that use the same memory without owning it: what captured work leases, which no borrow watches over.
//!
//! A capture has the order that its streams had. What is made of captured graphs later keeps it, and brings those that use the same memory,
//! one of them to write it, into an order: so work that safe code describes never meets itself.

use super::tree::{Kept, Resource, State};
use super::{Graph, Node};
use crate::hazard::Lease;
use crate::{Error, Result};

/// How a child and what the graph holds already go together.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Meeting {
    /// In any order.
    Free,
    /// The child comes behind what is there.
    InOrder,
}

impl Graph {
    /// The nodes that no other comes after.
    #[inline]
    pub(super) fn leaves(&self) -> Result<Vec<Node>> {
        let mut leaves = self.nodes()?;
        let edges = self.edges()?;
        leaves.retain(|node| edges.iter().all(|edge| edge.from != *node));
        Ok(leaves)
    }
}

impl State {
    /// How a child that keeps `child` can be added to `graph`.
    #[inline]
    pub(super) fn meeting(&self, operation: &'static str, graph: u32, child: &Kept) -> Result<Meeting> {
        let (mut here, mut elsewhere) = (Kept::default(), Kept::default());
        self.each_kept(|owner, resource| if owner == graph { here.add(resource) } else { elsewhere.add(resource) });
        if child.disturbs(&elsewhere) {
            let reason = "the child uses memory that work in another part of the graph writes, or the other way round, and \
                          nothing orders the two";
            return Err(Error::argument(operation, reason));
        }
        Ok(if child.disturbs(&here) { Meeting::InOrder } else { Meeting::Free })
    }

    /// That the order of nodes may be loosened, which captured work that writes memory depends on.
    #[inline]
    pub(super) fn expect_loose(&self, operation: &'static str) -> Result<()> {
        if !self.kept().leases().any(Lease::is_write) {
            return Ok(());
        }
        let reason = "the graph has captured work that writes memory, and keeps the order that this depends on";
        Err(Error::argument(operation, reason))
    }
}

impl Kept {
    /// Whether one writes leased memory that the other uses.
    #[inline]
    pub(super) fn disturbs(&self, other: &Self) -> bool {
        self.leases().any(|lease| other.lease_of(lease).is_some_and(|met| lease.is_write() || met.is_write()))
    }

    /// Whether `self`, in a place that `old` was in, in work that keeps all of `whole`, uses no memory in a way that is new to the order
    /// there.
    #[inline]
    pub(super) fn can_replace(&self, old: &Self, whole: &Self) -> bool {
        self.leases().all(|lease| {
            let is_alone = whole.lease_of(lease).is_none_or(|met| !lease.is_write() && !met.is_write());
            is_alone || old.lease_of(lease).is_some_and(|known| known.is_write() || !lease.is_write())
        })
    }

    #[inline]
    fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.resources().filter_map(|resource| if let Resource::Lease(lease) = resource { Some(lease) } else { None })
    }

    /// The lease of the same memory.
    #[inline]
    fn lease_of(&self, lease: &Lease) -> Option<&Lease> {
        self.leases().find(|other| other.key() == lease.key())
    }
}
