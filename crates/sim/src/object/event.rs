//! Events.

use std::time::Instant;

use curium_sys::CUevent_st;

use crate::context::Context;
use crate::context::ticket::Ticket;
use crate::handle::{Id, Kind, Object};
use crate::object::capture::Captured;
use crate::object::ipc_event::{RemoteRecord, Shared};

/// A point in the work of a stream.
pub(crate) struct Event {
    context: Id<Context>,
    flags: u32,
    /// The last record.
    ticket: Option<Ticket>,
    /// The location of the last record, if it was in a capture.
    captured: Option<Captured>,
    /// The number of times that the event was recorded.
    records: u64,
    /// The time at which the last record completed.
    time: Option<Instant>,
    /// The records in shared memory, for interprocess events.
    shared: Option<Shared>,
}

/// A record of an event that has begun.
pub(crate) struct Record {
    /// The number of records of the event up to this one.
    pub(crate) number: u64,
    /// The record in shared memory, for an interprocess event.
    pub(crate) shared: Option<RemoteRecord>,
}

impl Object for Event {
    type Raw = CUevent_st;
    const KIND: Kind = Kind::Event;
}

pub(crate) const DISABLE_TIMING: u32 = 2;

pub(crate) const INTERPROCESS: u32 = 4;

impl Event {
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

    pub(crate) fn context(&self) -> Id<Context> {
        self.context
    }

    /// Returns the work of the last record, unless it was in a capture.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    /// Returns the location of the last record, if it was in a capture.
    pub(crate) fn captured(&self) -> Option<&Captured> {
        self.captured.as_ref()
    }

    /// Returns the time at which the last record completed.
    pub(crate) fn time(&self) -> Option<Instant> {
        self.time
    }

    /// Returns `true` if the event was recorded with a time.
    pub(crate) fn is_timed(&self) -> bool {
        self.flags & DISABLE_TIMING == 0 && self.ticket.is_some()
    }

    /// Returns `true` if other processes may open the event.
    pub(crate) fn is_interprocess(&self) -> bool {
        self.flags & INTERPROCESS != 0
    }

    /// Returns the descriptor of the records in shared memory.
    pub(crate) fn shared_descriptor(&self) -> Option<i32> {
        let shared = self.shared.as_ref()?;
        Some(shared.records.descriptor())
    }

    /// Returns the last record if it is pending in another process.
    pub(crate) fn remote_record(&self) -> Option<RemoteRecord> {
        self.shared.as_ref().and_then(Shared::pending_remote)
    }

    /// Begins a record, whose work is not submitted yet.
    pub(crate) fn begin_record(&mut self) -> Record {
        self.records += 1;
        self.time = None;
        Record {
            number: self.records,
            shared: self.shared.as_mut().map(Shared::begin),
        }
    }

    /// Sets the work of the last record.
    pub(crate) fn set_record(&mut self, ticket: Option<Ticket>) {
        self.ticket = ticket;
    }

    /// Sets the time at which a record ran, if it is the last one.
    pub(crate) fn set_record_time(&mut self, number: u64, time: Instant) {
        if self.records == number {
            self.time = Some(time);
        }
    }

    /// Sets the location of the last record in a capture, or that it was in none.
    pub(crate) fn set_captured(&mut self, captured: Option<Captured>) {
        self.captured = captured;
    }

    /// Invalidates the last record if it was in a capture.
    pub(crate) fn lose_record(&mut self, capture: u64) {
        if let Some(captured) = &mut self.captured
            && captured.capture == capture
        {
            captured.is_lost = true;
        }
    }
}
