//! The events of contexts.

use std::time::Instant;

use curium_sys::{CUevent_st, CUresult};

use crate::argument::Pointer;
use crate::context::Context;
use crate::context::ticket::Ticket;
use crate::driver::Driver;
use crate::driver::context::Contexts;
use crate::driver::locked::Locked;
use crate::driver::schedule::Work;
use crate::handle::{Id, StaleHandle};
use crate::object::capture::Captured;
use crate::object::event::{Event, Record};
use crate::object::ipc_event::Shared;
use crate::race;
use crate::result::Result;

impl Contexts {
    /// Creates an event that was never recorded here.
    pub(crate) fn create_event(
        &mut self,
        context: Id<Context>,
        flags: u32,
        shared: Option<Shared>,
    ) -> Id<Event> {
        self.events.insert(Event::new(context, flags, shared))
    }

    /// Removes an event, whose pending record completes.
    pub(crate) fn remove_event(&mut self, id: Id<Event>) {
        self.events.remove(id);
    }

    /// Returns a live event of a valid context.
    pub(crate) fn valid_event(&self, raw: Pointer<CUevent_st>) -> Result<(Id<Event>, &Event)> {
        let id = Id::from(raw);
        match self.events.get(id) {
            Some(event) => {
                self.valid_context(event.context())?;
                Ok((id, event))
            }
            None if self.events.classify_stale(id) == StaleHandle::Unknown => {
                Err(CUresult::CUDA_ERROR_INVALID_HANDLE)
            }
            None => Err(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED),
        }
    }

    /// Returns an event if it is live.
    pub(crate) fn event(&self, id: Id<Event>) -> Option<&Event> {
        self.events.get(id)
    }

    /// Begins a record of an event, whose work is not submitted yet.
    pub(crate) fn begin_record(&mut self, id: Id<Event>) -> Option<Record> {
        self.events.get_mut(id).map(Event::begin_record)
    }

    /// Sets the work of the last record of an event.
    pub(crate) fn set_record(&mut self, id: Id<Event>, ticket: Option<Ticket>) {
        if let Some(event) = self.events.get_mut(id) {
            event.set_record(ticket);
        }
    }

    /// Sets the time at which a record of an event ran, if it is the last one.
    pub(crate) fn set_record_time(&mut self, id: Id<Event>, number: u64, time: Instant) {
        if let Some(event) = self.events.get_mut(id) {
            event.set_record_time(number, time);
        }
    }

    /// Sets the position in a capture at which an event was recorded last.
    pub(crate) fn set_captured(&mut self, id: Id<Event>, captured: Captured) {
        if let Some(event) = self.events.get_mut(id) {
            event.set_captured(Some(captured));
        }
    }

    /// Removes the position in a capture of an event that was recorded in a stream since.
    pub(crate) fn clear_captured(&mut self, id: Id<Event>) {
        if let Some(event) = self.events.get_mut(id) {
            event.set_captured(None);
        }
    }

    /// Invalidates the records of a capture that ended without a graph.
    pub(crate) fn lose_records(&mut self, capture: u64) {
        for (_, event) in self.events.iter_mut() {
            event.lose_record(capture);
        }
    }
}

impl Driver {
    /// Records the time at which a record of an event ran, if it is the last one.
    fn set_event_time(&self, id: Id<Event>, record: u64) -> Result {
        let now = Instant::now();
        self.lock().contexts.set_record_time(id, record, now);
        Ok(())
    }
}

impl Locked<'_> {
    /// Returns the work that records an event once more.
    pub(crate) fn record_work(&mut self, id: Id<Event>) -> Option<Work> {
        let Record { number, shared } = self.contexts.begin_record(id)?;
        Some(Work::Device(Box::new(move |driver| {
            // A process that waits for the event may communicate back to this one.
            if let Some(shared) = &shared {
                race::exchange_here();
                shared.finish();
            }
            driver.set_event_time(id, number)
        })))
    }
}
