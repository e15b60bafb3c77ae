//! The driver's part in events.

use std::time::Instant;

use curium_sys::{CUevent_st, CUresult};

use crate::argument::Pointer;
use crate::driver::Driver;
use crate::driver::locked::Locked;
use crate::driver::schedule::Work;
use crate::driver::state::State;
use crate::handle::{Id, StaleHandle};
use crate::object::event::Event;
use crate::object::ipc_event::Shared;
use crate::race;
use crate::result::Result;

impl Driver {
    /// Records the time at which a record of an event ran, if it is the last one.
    fn set_event_time(&self, id: Id<Event>, record: u64) -> Result {
        let now = Instant::now();
        if let Some(event) = self
            .lock()
            .events
            .get_mut(id)
            .filter(|event| event.records == record)
        {
            event.time = Some(now);
        }
        Ok(())
    }
}

impl Locked<'_> {
    /// Returns the work that records an event once more.
    pub(crate) fn record_work(&mut self, id: Id<Event>) -> Option<Work> {
        let event = self.events.get_mut(id)?;
        event.records += 1;
        event.time = None;
        let record = event.records;
        let shared = event.shared.as_mut().map(Shared::begin);
        Some(Work::Device(Box::new(move |driver| {
            // A process that waits for the event may communicate back to this one.
            if let Some(shared) = &shared {
                race::exchange_here();
                shared.finish();
            }
            driver.set_event_time(id, record)
        })))
    }
}

impl State {
    /// Returns a live event of a valid context.
    pub(crate) fn event(&self, raw: Pointer<CUevent_st>) -> Result<(Id<Event>, &Event)> {
        let id = Id::from(raw);
        match self.events.get(id) {
            Some(event) => {
                self.valid_context(event.context)?;
                Ok((id, event))
            }
            None if self.events.classify_stale(id) == StaleHandle::Unknown => {
                Err(CUresult::CUDA_ERROR_INVALID_HANDLE)
            }
            None => Err(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED),
        }
    }
}
