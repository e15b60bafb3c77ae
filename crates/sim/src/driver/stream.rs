//! Streams.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use curium_sys::{
    CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUcontext, CUdevice, CUevent_st, CUresult, CUstream,
    CUstream_st,
};

use crate::activity::{self, ActivityOperation};
use crate::argument::Pointer;
use crate::driver::graph::Content;
use crate::driver::stream_attribute::Attributes;
use crate::driver::{Context, Driver, Result, State, context, event};
use crate::handle::{Id, Kind, Object, StaleHandle};
use crate::lock::MutexGuard;
use crate::per_thread;
use crate::schedule::{Target, Ticket, Work};

/// A queue of work that runs in order.
pub(crate) struct Stream {
    pub(crate) context: Id<Context>,
    pub(crate) class: Class,
    /// `true` if a caller created it; default streams belong to their context.
    pub(crate) is_created: bool,
    pub(crate) priority: i32,
    pub(crate) number: u64,
    /// The last work in the queue.
    pub(crate) tail: Option<Ticket>,
    pub(crate) attributes: Attributes,
}

/// The synchronization between a stream and the legacy default stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Class {
    /// The legacy default stream of a context.
    Legacy,
    Blocking,
    NonBlocking,
}

impl Object for Stream {
    type Raw = CUstream_st;
    const KIND: Kind = Kind::Stream;
}

const NON_BLOCKING: u32 = 1;
const LEAST_PRIORITY: i32 = 0;
const GREATEST_PRIORITY: i32 = -5;

impl Stream {
    pub(crate) fn new_default(context: Id<Context>, class: Class, number: u64) -> Self {
        Self {
            context,
            class,
            is_created: false,
            priority: LEAST_PRIORITY,
            number,
            tail: None,
            attributes: Attributes::default(),
        }
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
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
        let number = state.next_number();
        let stream = Stream {
            context,
            class,
            is_created: true,
            priority,
            number,
            tail: None,
            attributes: Attributes::default(),
        };
        output.write(state.streams.insert(stream).as_raw())
    }

    pub(crate) fn cuStreamDestroy_v2(&self, stream: Pointer<CUstream_st>) -> Result {
        let mut state = self.lock();
        let id = created(stream)?;
        let context = self.stream_context(&state, id)?;
        state.valid_context(context)?;
        // Default streams have internal handles in the table, which callers never receive.
        let stream = state
            .streams
            .remove(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        state.abandon_captures(|origin| origin == id);
        if stream.class == Class::Blocking {
            state
                .valid_context_mut(context)?
                .tails_of_destroyed_streams
                .extend(stream.tail);
        }
        Ok(())
    }

    pub(crate) fn cuStreamSynchronize(&self, stream: Pointer<CUstream_st>) -> Result {
        let mut state = self.lock();
        let id = self.awaited_stream(&mut state, stream)?;
        let context = self.stream_context(&state, id)?;
        let tickets = state.unfinished(id);
        let state = self.wait(state, &tickets)?;
        self.memory().trim_pools();
        state.valid_context(context).map(|_| ())
    }

    pub(crate) fn cuStreamQuery(&self, stream: Pointer<CUstream_st>) -> Result {
        let mut state = self.lock();
        let id = self.awaited_stream(&mut state, stream)?;
        let tickets = state.unfinished(id);
        if !tickets
            .iter()
            .any(|ticket| state.schedule.is_pending(*ticket))
        {
            state.schedule.observe(&tickets);
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
        if flags > event::EXTERNAL {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let start = Instant::now();
        let mut state = self.lock();
        let id = self.working_stream(&mut state, stream)?;
        let (event, recorded) = state.event(event)?;
        let ticket = recorded.ticket;
        let remote_record = recorded.remote_record();
        let is_external = flags == event::EXTERNAL;
        if is_external && !state.is_capturing(id) {
            return Err(CUresult::CUDA_ERROR_ILLEGAL_STATE);
        }
        if is_external {
            return state.add_captured(id, Content::Wait(event));
        }
        if !state.wait_captured(id, event)? {
            self.wait_in_stream(&mut state, id, ticket);
            self.wait_for_remote_in_stream(&mut state, id, remote_record);
            self.report_on_stream(&state, id, start, ActivityOperation::Wait);
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
        let stream = self.uncaptured_stream(&mut state, stream)?;
        let class = state.streams.get(stream).map(|stream| stream.class);
        output.write(match class.ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)? {
            Class::NonBlocking => NON_BLOCKING,
            _ => 0,
        })
    }

    pub(crate) fn cuStreamGetPriority(
        &self,
        stream: Pointer<CUstream_st>,
        priority: Pointer<i32>,
    ) -> Result {
        priority
            .required()?
            .write(self.find_stream(stream)?.1.priority)
    }

    pub(crate) fn cuStreamGetCtx(
        &self,
        stream: Pointer<CUstream_st>,
        context: Pointer<CUcontext>,
    ) -> Result {
        context
            .required()?
            .write(self.find_stream(stream)?.1.context.as_raw())
    }

    pub(crate) fn cuStreamGetDevice(
        &self,
        stream: Pointer<CUstream_st>,
        device: Pointer<CUdevice>,
    ) -> Result {
        let output = device.required()?;
        let mut state = self.lock();
        let stream = self.uncaptured_stream(&mut state, stream)?;
        let context = self.stream_context(&state, stream)?;
        output.write(state.valid_context(context)?.device as CUdevice)
    }

    pub(crate) fn cuStreamGetId(&self, stream: Pointer<CUstream_st>, id: Pointer<u64>) -> Result {
        let output = id.required()?;
        let mut state = self.lock();
        let stream = self.uncaptured_stream(&mut state, stream)?;
        let number = state.streams.get(stream).map(|stream| stream.number);
        output.write(number.ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?)
    }
}

impl Driver {
    /// Reports an activity of a call that began at `start`, if activities are observed.
    pub(crate) fn report_on_stream(
        &self,
        state: &State,
        stream: Id<Stream>,
        start: Instant,
        operation: ActivityOperation<'_>,
    ) {
        if let Some(location) = state
            .target(stream)
            .and_then(|target| state.activity_location(target))
        {
            activity::report(location, start, Instant::now(), operation);
        }
    }

    /// Returns the stream of a handle: a created one, or a default stream of the current context.
    pub(crate) fn stream(
        &self,
        state: &mut State,
        raw: Pointer<CUstream_st>,
    ) -> Result<Id<Stream>> {
        let per_thread =
            raw.as_ptr() == CU_STREAM_PER_THREAD || raw.is_null() && per_thread::is_default();
        if raw.is_null() || raw.as_ptr() == CU_STREAM_LEGACY || per_thread {
            let context = self.current()?;
            let legacy = state.valid_context(context)?.legacy;
            return if per_thread {
                state.per_thread_stream(context, this_thread())
            } else {
                Ok(legacy)
            };
        }
        let id = created(raw)?;
        let context = self.stream_context(state, id)?;
        state.valid_context(context)?;
        Ok(id)
    }

    /// Returns the properties of the stream of a handle.
    fn find_stream(&self, raw: Pointer<CUstream_st>) -> Result<(Id<Stream>, Stream)> {
        let mut state = self.lock();
        let id = self.queried_stream(&mut state, raw)?;
        let stream = state
            .streams
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        Ok((id, Stream { ..*stream }))
    }

    /// Returns the context of a live stream.
    pub(crate) fn stream_context(&self, state: &State, id: Id<Stream>) -> Result<Id<Context>> {
        match state.streams.get(id) {
            Some(stream) => Ok(stream.context),
            None if state.streams.classify_stale(id) == StaleHandle::Lost => {
                Err(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED)
            }
            None => Err(CUresult::CUDA_ERROR_INVALID_HANDLE),
        }
    }

    /// Queues work in a stream.
    pub(crate) fn queue(
        &self,
        state: &mut State,
        stream: Id<Stream>,
        work: Work,
    ) -> Option<Ticket> {
        self.queue_after(state, stream, &[], work)
    }

    /// Enqueues work in a stream with additional dependencies.
    pub(crate) fn queue_after(
        &self,
        state: &mut State,
        stream: Id<Stream>,
        extra: &[Ticket],
        work: Work,
    ) -> Option<Ticket> {
        let target = state.target(stream)?;
        let mut after = state.predecessors(stream);
        after.extend(extra);
        let ticket = state.schedule.submit(target, &after, work);
        state.streams.get_mut(stream)?.tail = Some(ticket);
        self.wake_workers(state);
        Some(ticket)
    }

    /// Enqueues work in a stream and waits for it. Fails if the device fails.
    pub(crate) fn queue_and_wait(
        &self,
        mut state: MutexGuard<'_, State>,
        stream: Id<Stream>,
        work: Work,
    ) -> Result {
        let context = self.stream_context(&state, stream)?;
        let ticket = self.queue(&mut state, stream, work);
        let state = self.wait(state, ticket.as_slice())?;
        state.valid_context(context).map(|_| ())
    }
}

impl State {
    /// Returns the device, the context and the number of a stream.
    fn target(&self, stream: Id<Stream>) -> Option<Target> {
        let Stream {
            context, number, ..
        } = *self.streams.get(stream)?;
        Some(Target {
            device: self.contexts.get(context)?.device,
            context,
            stream: number,
        })
    }

    /// Returns the work that a wait for a stream covers, some of which may have completed.
    pub(crate) fn unfinished(&self, id: Id<Stream>) -> Vec<Ticket> {
        match self.streams.get(id) {
            Some(stream) if stream.class == Class::Legacy => self.predecessors(id),
            Some(stream) => stream.tail.into_iter().collect(),
            None => Vec::new(),
        }
    }
}

impl context::Limits {
    /// The range of stream priorities: the least and the greatest.
    pub(crate) const STREAM_PRIORITIES: (i32, i32) = (LEAST_PRIORITY, GREATEST_PRIORITY);
}

/// Returns a priority of the device's range.
pub(super) fn clamped(priority: i32) -> i32 {
    priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY)
}

/// Returns the handle of a stream that is not a default stream.
fn created(raw: Pointer<CUstream_st>) -> Result<Id<Stream>> {
    let id = Id::from(raw);
    if id.is_well_formed() {
        Ok(id)
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }
}

/// Checks that a handle is not that of the legacy stream, in which batches are not permitted.
pub(crate) fn expect_no_legacy(raw: Pointer<CUstream_st>) -> Result {
    const LEGACY: u64 = 1;
    if raw.is_null() || raw.address() == LEGACY {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(())
}

/// Returns a unique number of the calling thread.
pub(super) fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    // The number has no destructor, so it exists as long as the thread.
    NUMBER.with(|number| *number)
}
