//! The C functions for events.

use std::time::Instant;

use curium_sys::{CUevent, CUevent_st, CUresult, CUstream_st};

use crate::argument::Pointer;
use crate::call::Call;
use crate::context::stream::Stream;
use crate::context::ticket::Ticket;
use crate::driver::locked::Locked;
use crate::driver::schedule::Work;
use crate::handle::Id;
use crate::object::event::{DISABLE_TIMING, INTERPROCESS};
use crate::object::graph::content::Content;
use crate::object::ipc_event::Shared;
use crate::result::Result;

const ALL_FLAGS: u32 = 7;

/// The flags of records and waits: in a capture they are nodes.
pub(crate) const EXTERNAL: u32 = 1;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuEventCreate(&self, event: Pointer<CUevent>, flags: u32) -> Result {
        let output = event.required()?;
        let (mut state, context) = self.enter_current()?;
        if flags & !ALL_FLAGS != 0 || flags & (INTERPROCESS | DISABLE_TIMING) == INTERPROCESS {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let context = state.contexts.owning_context(context);
        let event = state
            .contexts
            .create_event(context, flags, Shared::from_flags(flags));
        output.write(event.as_raw())
    }

    pub(crate) fn cuEventDestroy_v2(&self, event: Pointer<CUevent_st>) -> Result {
        let mut state = self.lock();
        let id = state.contexts.valid_event(event)?.0;
        state.contexts.remove_event(id);
        Ok(())
    }

    pub(crate) fn cuEventRecord(
        &self,
        event: Pointer<CUevent_st>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        self.cuEventRecordWithFlags(event, stream, 0)
    }

    pub(crate) fn cuEventRecordWithFlags(
        &self,
        event: Pointer<CUevent_st>,
        stream: Pointer<CUstream_st>,
        flags: u32,
    ) -> Result {
        let mut state = self.lock();
        let stream = state.working_stream(stream)?;
        let (id, context) = state
            .contexts
            .valid_event(event)
            .map(|(id, event)| (id, event.context()))?;
        let is_capturing = state.captures.is_capturing(stream);
        if flags > EXTERNAL {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if flags == EXTERNAL && !is_capturing {
            return Err(CUresult::CUDA_ERROR_ILLEGAL_STATE);
        }
        if !is_capturing {
            return state.record_after(event, stream, &[]);
        }
        if state
            .contexts
            .owning_context(state.contexts.stream_context(stream)?)
            != context
        {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        if flags == EXTERNAL {
            return state.add_captured(stream, Content::Record(id));
        }
        state.record_captured(id, stream)
    }

    pub(crate) fn cuEventQuery(&self, event: Pointer<CUevent_st>) -> Result {
        let mut state = self.lock();
        let (id, ticket) = state
            .contexts
            .valid_event(event)
            .map(|(id, event)| (id, event.ticket()))?;
        state.check_not_captured(id)?;
        let is_pending = ticket.is_some_and(|ticket| state.schedule.is_pending(ticket));
        if !is_pending
            && state
                .contexts
                .valid_event(event)?
                .1
                .remote_record()
                .is_none()
        {
            state.schedule.record_host_wait(ticket.as_slice());
            return Ok(());
        }
        state.schedule.release_one();
        self.changed().notify_all();
        Err(CUresult::CUDA_ERROR_NOT_READY)
    }

    pub(crate) fn cuEventSynchronize(&self, event: Pointer<CUevent_st>) -> Result {
        let mut state = self.lock();
        let (id, event) = state.contexts.valid_event(event)?;
        let context = event.context();
        let ticket = event.ticket();
        let remote_record = event.remote_record();
        state.check_not_captured(id)?;
        drop(state.wait(ticket.as_slice())?);
        self.wait_for_remote(context, remote_record.as_ref())?;
        self.lock().contexts.valid_context(context).map(|_| ())
    }

    pub(crate) fn cuEventElapsedTime(
        &self,
        milliseconds: Pointer<f32>,
        start: Pointer<CUevent_st>,
        end: Pointer<CUevent_st>,
    ) -> Result {
        // The code is that of hardware.
        let output = milliseconds
            .required()
            .or(Err(CUresult::CUDA_ERROR_INVALID_HANDLE))?;
        let state = self.lock();
        let (_, start) = state.contexts.valid_event(start)?;
        let (_, end) = state.contexts.valid_event(end)?;
        if start.captured().is_some() || end.captured().is_some() {
            return Err(CUresult::CUDA_ERROR_CAPTURED_EVENT);
        }
        if start.context() != end.context() || !start.is_timed() || !end.is_timed() {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        match (start.time(), end.time()) {
            (Some(start), Some(end)) => output.write(milliseconds_between(start, end)),
            _ => Err(CUresult::CUDA_ERROR_NOT_READY),
        }
    }

    pub(crate) fn cuEventElapsedTime_v2(
        &self,
        milliseconds: Pointer<f32>,
        start: Pointer<CUevent_st>,
        end: Pointer<CUevent_st>,
    ) -> Result {
        self.cuEventElapsedTime(milliseconds, start, end)
    }
}

impl Locked<'_> {
    /// Enqueues the record of an event in a stream of the same context, with additional
    /// dependencies.
    pub(crate) fn record_after(
        &mut self,
        event: Pointer<CUevent_st>,
        stream: Id<Stream>,
        extra: &[Ticket],
    ) -> Result {
        let (id, context) = self
            .contexts
            .valid_event(event)
            .map(|(id, event)| (id, event.context()))?;
        if self
            .contexts
            .owning_context(self.contexts.stream_context(stream)?)
            != context
        {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        let stamp = self
            .record_work(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        let ticket = self.queue_after(stream, extra, stamp);
        self.contexts.set_record(id, ticket);
        self.contexts.clear_captured(id);
        Ok(())
    }

    /// Makes later work of a stream wait for a record if it is pending, or if race checks are on.
    pub(crate) fn wait_in_stream(&mut self, stream: Id<Stream>, record: Option<Ticket>) {
        if let Some(ticket) = record.filter(|ticket| self.schedule.needs_wait(*ticket)) {
            self.queue_after(stream, &[ticket], Work::Device(Box::new(|_| Ok(()))));
        }
    }
}

/// Returns the time from `start` to `end`, negative if `end` was earlier.
fn milliseconds_between(start: Instant, end: Instant) -> f32 {
    match end.checked_duration_since(start) {
        Some(after) => after.as_secs_f32() * 1e3,
        None => -start.duration_since(end).as_secs_f32() * 1e3,
    }
}
