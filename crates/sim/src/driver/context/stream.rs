//! The streams of contexts, and the order of their work.

use curium_sys::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUresult, CUstream_st};

use crate::argument::Pointer;
use crate::context::Context;
use crate::context::stream::{Class, Stream, this_thread};
use crate::context::ticket::{Target, Ticket};
use crate::driver::context::Contexts;
use crate::driver::locked::Locked;
use crate::driver::schedule::Work;
use crate::handle::{Id, StaleHandle};
use crate::result::Result;
use crate::{activity, per_thread};

impl Contexts {
    /// Creates a stream.
    pub(crate) fn create_stream(
        &mut self,
        context: Id<Context>,
        class: Class,
        priority: i32,
    ) -> Id<Stream> {
        let number = self.numbers.next();
        self.streams
            .insert(Stream::new(context, class, priority, number))
    }

    /// Removes a stream, whose work continues.
    pub(crate) fn remove_stream(&mut self, id: Id<Stream>) -> Result {
        let stream = self
            .streams
            .remove(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        if stream.class() == Class::Blocking
            && let Some(tail) = stream.tail()
        {
            self.valid_context_mut(stream.context())?
                .keep_tail_of_destroyed_stream(tail);
        }
        Ok(())
    }

    /// Returns a live stream.
    pub(crate) fn stream(&self, id: Id<Stream>) -> Result<&Stream> {
        self.streams
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }

    /// Returns a live stream for modification.
    pub(crate) fn stream_mut(&mut self, id: Id<Stream>) -> Result<&mut Stream> {
        self.streams
            .get_mut(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }

    /// Returns the context of a live stream.
    pub(crate) fn stream_context(&self, id: Id<Stream>) -> Result<Id<Context>> {
        match self.streams.get(id) {
            Some(stream) => Ok(stream.context()),
            None if self.streams.classify_stale(id) == StaleHandle::Lost => {
                Err(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED)
            }
            None => Err(CUresult::CUDA_ERROR_INVALID_HANDLE),
        }
    }

    /// Returns the device, the context and the number of a stream.
    pub(crate) fn stream_target(&self, id: Id<Stream>) -> Option<Target> {
        let stream = self.streams.get(id)?;
        Some(Target {
            device: self.contexts.get(stream.context())?.device(),
            context: stream.context(),
            stream: stream.number(),
        })
    }

    /// Returns the device, the context and the number of a stream whose context is valid.
    pub(crate) fn valid_target(&self, id: Id<Stream>) -> Result<Target> {
        self.valid_context(self.stream_context(id)?)?;
        self.stream_target(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }

    /// Returns the location of activities of a stream, if they are observed.
    pub(crate) fn activity_location(&self, target: Target) -> Option<activity::Location> {
        if !activity::is_observed() {
            return None;
        }
        Some(activity::Location {
            device: target.device,
            context: self.context_number(target.context)?,
            stream: target.stream,
        })
    }

    /// Returns `true` for the legacy default stream of a context.
    pub(crate) fn is_legacy(&self, id: Id<Stream>) -> bool {
        let stream = self.streams.get(id);
        stream.is_some_and(|stream| stream.class() == Class::Legacy)
    }

    /// Returns the streams whose work is work of a context: its own, and those of its green
    /// contexts.
    pub(crate) fn streams_within(&self, context: Id<Context>) -> Vec<Id<Stream>> {
        self.streams
            .iter()
            .filter(|(_, stream)| self.is_within(stream.context(), context))
            .map(|(id, _)| id)
            .collect()
    }

    /// Returns the blocking streams of a context, which its legacy default stream waits for.
    pub(crate) fn blocking_streams(
        &self,
        context: Id<Context>,
    ) -> impl Iterator<Item = (Id<Stream>, &Stream)> {
        self.streams.iter().filter(move |(_, stream)| {
            stream.class() == Class::Blocking && stream.context() == context
        })
    }

    /// Returns the per-thread default stream of a thread in a context, created on first use.
    pub(crate) fn per_thread_stream(
        &mut self,
        context: Id<Context>,
        thread: u64,
    ) -> Result<Id<Stream>> {
        if let Some(stream) = self.valid_context(context)?.per_thread_stream(thread) {
            return Ok(stream);
        }
        let number = self.numbers.next();
        let stream = Stream::new_default(context, Class::Blocking, number);
        let stream = self.streams.insert(stream);
        self.valid_context_mut(context)?
            .add_per_thread_stream(thread, stream);
        Ok(stream)
    }

    /// Makes an operation the last one of a stream.
    pub(crate) fn append(&mut self, id: Id<Stream>, ticket: Ticket) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.append(ticket);
        }
    }

    /// Returns the dependencies of new work in a stream, some of which may have completed.
    pub(crate) fn predecessors(&self, id: Id<Stream>) -> Vec<Ticket> {
        let Some(stream) = self.streams.get(id) else {
            return Vec::new();
        };
        let mut tickets: Vec<Ticket> = stream.tail().into_iter().collect();
        let context = self.contexts.get(stream.context());
        match stream.class() {
            Class::NonBlocking => {}
            Class::Blocking => {
                let legacy = context.and_then(|context| self.streams.get(context.legacy_stream()));
                tickets.extend(legacy.and_then(Stream::tail));
            }
            Class::Legacy => {
                let blocking = self.blocking_streams(stream.context());
                tickets.extend(blocking.filter_map(|(_, stream)| stream.tail()));
                if let Some(context) = context {
                    tickets.extend(context.tails_of_destroyed_streams());
                }
            }
        }
        tickets.sort_unstable();
        tickets
    }

    /// Returns the work that a wait for a stream covers, some of which may have completed.
    pub(crate) fn unfinished(&self, id: Id<Stream>) -> Vec<Ticket> {
        match self.streams.get(id) {
            Some(stream) if stream.class() == Class::Legacy => self.predecessors(id),
            Some(stream) => stream.tail().into_iter().collect(),
            None => Vec::new(),
        }
    }
}

impl Locked<'_> {
    /// Returns the stream of a handle: a created one, or a default stream of the current context.
    pub(crate) fn stream(&mut self, raw: Pointer<CUstream_st>) -> Result<Id<Stream>> {
        let driver = self.driver;
        let per_thread =
            raw.as_ptr() == CU_STREAM_PER_THREAD || raw.is_null() && per_thread::is_default();
        if raw.is_null() || raw.as_ptr() == CU_STREAM_LEGACY || per_thread {
            let context = driver.current()?;
            let legacy = self.contexts.valid_context(context)?.legacy_stream();
            return if per_thread {
                self.contexts.per_thread_stream(context, this_thread())
            } else {
                Ok(legacy)
            };
        }
        let id = created(raw)?;
        let context = self.contexts.stream_context(id)?;
        self.contexts.valid_context(context)?;
        Ok(id)
    }

    /// Queues work in a stream.
    pub(crate) fn queue(&mut self, stream: Id<Stream>, work: Work) -> Option<Ticket> {
        self.queue_after(stream, &[], work)
    }

    /// Enqueues work in a stream with additional dependencies.
    pub(crate) fn queue_after(
        &mut self,
        stream: Id<Stream>,
        extra: &[Ticket],
        work: Work,
    ) -> Option<Ticket> {
        let target = self.contexts.stream_target(stream)?;
        let mut after = self.contexts.predecessors(stream);
        after.extend(extra);
        let ticket = self.schedule.submit(target, &after, work);
        self.contexts.append(stream, ticket);
        self.wake_workers();
        Some(ticket)
    }
}

/// Returns the handle of a stream that is not a default stream.
pub(crate) fn created(raw: Pointer<CUstream_st>) -> Result<Id<Stream>> {
    let id = Id::from(raw);
    if id.is_well_formed() {
        Ok(id)
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }
}
