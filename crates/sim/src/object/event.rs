//! Events.

use std::time::Instant;

use curium_sys::CUevent_st;

use crate::context::Context;
use crate::context::ticket::Ticket;
use crate::handle::{Id, Kind, Object};
use crate::object::capture::event::Captured;
use crate::object::ipc_event::{RemoteRecord, Shared};

/// A point in the work of a stream.
pub(crate) struct Event {
    pub(crate) context: Id<Context>,
    pub(crate) flags: u32,
    /// The last record.
    pub(crate) ticket: Option<Ticket>,
    /// The location of the last record, if it was in a capture.
    pub(crate) captured: Option<Captured>,
    /// The number of times that the event was recorded.
    pub(crate) records: u64,
    /// The time at which the last record completed.
    pub(crate) time: Option<Instant>,
    /// The records in shared memory, for interprocess events.
    pub(crate) shared: Option<Shared>,
}

impl Object for Event {
    type Raw = CUevent_st;
    const KIND: Kind = Kind::Event;
}

pub(crate) const DISABLE_TIMING: u32 = 2;

pub(crate) const INTERPROCESS: u32 = 4;

impl Event {
    /// Returns `true` if the event was recorded with a time.
    pub(crate) fn is_timed(&self) -> bool {
        self.flags & DISABLE_TIMING == 0 && self.ticket.is_some()
    }

    /// Creates an event that was never recorded here.
    pub(crate) fn new(context: Id<Context>, flags: u32, shared: Option<Shared>) -> Self {
        Self {
            context,
            flags,
            ticket: None,
            captured: None,
            records: 0,
            time: None,
            shared,
        }
    }

    /// Returns the last record if it is pending in another process.
    pub(crate) fn remote_record(&self) -> Option<RemoteRecord> {
        self.shared.as_ref().and_then(Shared::pending_remote)
    }
}
