//! The C functions for streams.

use std::time::Instant;

use curium_sys::{CUcontext, CUdevice, CUevent_st, CUresult, CUstream, CUstream_st};

use crate::activity::{self, ActivityOperation};
use crate::argument::Pointer;
use crate::call::Call;
use crate::call::event::EXTERNAL;
use crate::context::stream::{Class, GREATEST_PRIORITY, LEAST_PRIORITY, Stream};
use crate::driver::context::stream::created;
use crate::driver::locked::Locked;
use crate::driver::schedule::Work;
use crate::handle::Id;
use crate::object::graph::content::Content;
use crate::result::Result;

const NON_BLOCKING: u32 = 1;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuStreamCreate(&self, stream: Pointer<CUstream>, flags: u32) -> Result {
        self.cuStreamCreateWithPriority(stream, flags, LEAST_PRIORITY)
    }

    pub(crate) fn cuStreamCreateWithPriority(
        &self,
        stream: Pointer<CUstream>,
        flags: u32,
        priority: i32,
    ) -> Result {
        let output = stream.required()?;
        if flags & !NON_BLOCKING != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let (mut state, context) = self.enter_current()?;
        let class = if flags == NON_BLOCKING {
            Class::NonBlocking
        } else {
            Class::Blocking
        };
        let priority = clamped(priority);
        let stream = state.contexts.create_stream(context, class, priority);
        output.write(stream.as_raw())
    }

    pub(crate) fn cuStreamDestroy_v2(&self, stream: Pointer<CUstream_st>) -> Result {
        let mut state = self.lock();
        let id = created(stream)?;
        let context = state.contexts.stream_context(id)?;
        state.contexts.valid_context(context)?;
        // Default streams have internal handles in the table, which callers never receive.
        state.contexts.remove_stream(id)?;
        state.abandon_captures(|origin| origin == id);
        Ok(())
    }

    pub(crate) fn cuStreamSynchronize(&self, stream: Pointer<CUstream_st>) -> Result {
        let mut state = self.lock();
        let id = state.awaited_stream(stream)?;
        let context = state.contexts.stream_context(id)?;
        let tickets = state.contexts.unfinished(id);
        let state = state.wait(&tickets)?;
        self.memory().trim_pools();
        state.contexts.valid_context(context).map(|_| ())
    }

    pub(crate) fn cuStreamQuery(&self, stream: Pointer<CUstream_st>) -> Result {
        let mut state = self.lock();
        let id = state.awaited_stream(stream)?;
        let tickets = state.contexts.unfinished(id);
        if !tickets
            .iter()
            .any(|ticket| state.schedule.is_pending(*ticket))
        {
            state.schedule.record_host_wait(&tickets);
            return Ok(());
        }
        state.schedule.release_one();
        self.changed().notify_all();
        Err(CUresult::CUDA_ERROR_NOT_READY)
    }

    pub(crate) fn cuStreamWaitEvent(
        &self,
        stream: Pointer<CUstream_st>,
        event: Pointer<CUevent_st>,
        flags: u32,
    ) -> Result {
        if flags > EXTERNAL {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let start = Instant::now();
        let mut state = self.lock();
        let id = state.working_stream(stream)?;
        let (event, recorded) = state.contexts.valid_event(event)?;
        let ticket = recorded.ticket();
        let remote_record = recorded.remote_record();
        let is_external = flags == EXTERNAL;
        if is_external && !state.captures.is_capturing(id) {
            return Err(CUresult::CUDA_ERROR_ILLEGAL_STATE);
        }
        if is_external {
            return state.add_captured(id, Content::Wait(event));
        }
        if !state.wait_captured(id, event)? {
            state.wait_in_stream(id, ticket);
            state.wait_for_remote_in_stream(id, remote_record);
            state.report_on_stream(id, start, ActivityOperation::Wait);
        }
        Ok(())
    }

    pub(crate) fn cuStreamGetFlags(
        &self,
        stream: Pointer<CUstream_st>,
        flags: Pointer<u32>,
    ) -> Result {
        let output = flags.required()?;
        let mut state = self.lock();
        let stream = state.uncaptured_stream(stream)?;
        output.write(match state.contexts.stream(stream)?.class() {
            Class::NonBlocking => NON_BLOCKING,
            _ => 0,
        })
    }

    pub(crate) fn cuStreamGetPriority(
        &self,
        stream: Pointer<CUstream_st>,
        priority: Pointer<i32>,
    ) -> Result {
        let output = priority.required()?;
        let mut state = self.lock();
        let stream = state.queried_stream(stream)?;
        output.write(state.contexts.stream(stream)?.priority())
    }

    pub(crate) fn cuStreamGetCtx(
        &self,
        stream: Pointer<CUstream_st>,
        context: Pointer<CUcontext>,
    ) -> Result {
        let output = context.required()?;
        let mut state = self.lock();
        let stream = state.queried_stream(stream)?;
        output.write(state.contexts.stream(stream)?.context().as_raw())
    }

    pub(crate) fn cuStreamGetDevice(
        &self,
        stream: Pointer<CUstream_st>,
        device: Pointer<CUdevice>,
    ) -> Result {
        let output = device.required()?;
        let mut state = self.lock();
        let stream = state.uncaptured_stream(stream)?;
        let context = state.contexts.stream_context(stream)?;
        output.write(state.contexts.valid_context(context)?.device() as CUdevice)
    }

    pub(crate) fn cuStreamGetId(&self, stream: Pointer<CUstream_st>, id: Pointer<u64>) -> Result {
        let output = id.required()?;
        let mut state = self.lock();
        let stream = state.uncaptured_stream(stream)?;
        output.write(state.contexts.stream(stream)?.number())
    }
}

impl Locked<'_> {
    /// Enqueues work in a stream and waits for it. Fails if the device fails.
    pub(crate) fn queue_and_wait(mut self, stream: Id<Stream>, work: Work) -> Result {
        let context = self.contexts.stream_context(stream)?;
        let ticket = self.queue(stream, work);
        let state = self.wait(ticket.as_slice())?;
        state.contexts.valid_context(context).map(|_| ())
    }

    /// Reports an activity of a call that began at `start`, if activities are observed.
    pub(crate) fn report_on_stream(
        &self,
        stream: Id<Stream>,
        start: Instant,
        operation: ActivityOperation<'_>,
    ) {
        if let Some(location) = self
            .contexts
            .stream_target(stream)
            .and_then(|target| self.contexts.activity_location(target))
        {
            activity::report(location, start, Instant::now(), operation);
        }
    }
}

/// Returns a priority of the device's range.
pub(crate) fn clamped(priority: i32) -> i32 {
    priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY)
}

/// Checks that a handle is not that of the legacy stream, in which batches are not permitted.
pub(crate) fn check_no_legacy(raw: Pointer<CUstream_st>) -> Result {
    const LEGACY: u64 = 1;
    if raw.is_null() || raw.address() == LEGACY {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(())
}
