//! Streams.

use curium_sys::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUresult, CUstream_st};

use crate::argument::Pointer;
use crate::context::Context;
use crate::context::stream::{Class, Stream, this_thread};
use crate::context::ticket::{Target, Ticket};
use crate::driver::locked::Locked;
use crate::driver::schedule::Work;
use crate::driver::state::State;
use crate::handle::{Id, StaleHandle};
use crate::per_thread;
use crate::result::Result;

impl Locked<'_> {
    /// Returns the stream of a handle: a created one, or a default stream of the current context.
    pub(crate) fn stream(&mut self, raw: Pointer<CUstream_st>) -> Result<Id<Stream>> {
        let driver = self.driver;
        let per_thread =
            raw.as_ptr() == CU_STREAM_PER_THREAD || raw.is_null() && per_thread::is_default();
        if raw.is_null() || raw.as_ptr() == CU_STREAM_LEGACY || per_thread {
            let context = driver.current()?;
            let legacy = self.valid_context(context)?.legacy;
            return if per_thread {
                self.per_thread_stream(context, this_thread())
            } else {
                Ok(legacy)
            };
        }
        let id = created(raw)?;
        let context = self.stream_context(id)?;
        self.valid_context(context)?;
        Ok(id)
    }

    /// Returns the context of a live stream.
    pub(crate) fn stream_context(&self, id: Id<Stream>) -> Result<Id<Context>> {
        match self.streams.get(id) {
            Some(stream) => Ok(stream.context),
            None if self.streams.classify_stale(id) == StaleHandle::Lost => {
                Err(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED)
            }
            None => Err(CUresult::CUDA_ERROR_INVALID_HANDLE),
        }
    }

    /// Returns the device, the context and the number of a stream whose context is valid.
    pub(crate) fn valid_target(&self, id: Id<Stream>) -> Result<Target> {
        self.valid_context(self.stream_context(id)?)?;
        self.target(id).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
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
        let target = self.target(stream)?;
        let mut after = self.predecessors(stream);
        after.extend(extra);
        let ticket = self.schedule.submit(target, &after, work);
        self.streams.get_mut(stream)?.tail = Some(ticket);
        self.wake_workers();
        Some(ticket)
    }
}

impl State {
    /// Returns the device, the context and the number of a stream.
    pub(crate) fn target(&self, stream: Id<Stream>) -> Option<Target> {
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

/// Returns the handle of a stream that is not a default stream.
pub(crate) fn created(raw: Pointer<CUstream_st>) -> Result<Id<Stream>> {
    let id = Id::from(raw);
    if id.is_well_formed() {
        Ok(id)
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }
}
