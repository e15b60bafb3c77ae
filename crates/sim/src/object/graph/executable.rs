//! Executables: instantiated graphs.

use std::sync::Arc;

use curium_sys::CUgraphExec_st;

use crate::context::ticket::Ticket;
use crate::handle::{Id, Kind, Object};
use crate::lock::{Mutex, Rank};
use crate::object::graph::Graph;
use crate::object::graph::condition::Conditions;
use crate::object::graph::object::UserObject;
use crate::object::graph::plan::{Plan, SharedConditions};

/// A graph at the time of its instantiation, with the updates since.
pub(crate) struct Executable {
    /// The graph that it was instantiated from, which may be destroyed.
    pub(crate) graph: Id<Graph>,
    pub(crate) plan: Plan,
    pub(crate) conditions: SharedConditions,
    pub(crate) objects: Vec<(Id<UserObject>, u32)>,
    pub(crate) flags: u64,
    pub(crate) number: u32,
    /// The end of the last launch: launches do not overlap.
    pub(crate) last: Option<Ticket>,
}

impl Object for Executable {
    type Raw = CUgraphExec_st;
    const KIND: Kind = Kind::GraphExec;
}

impl Executable {
    /// Replaces the conditional values by those of an updated graph. Launches that were enqueued
    /// before keep theirs.
    pub(crate) fn adopt_conditions(&mut self, mut conditions: Conditions) {
        conditions.keep_values(&self.conditions.lock());
        self.conditions = Arc::new(Mutex::new(Rank::GraphConditions, conditions));
    }
}
