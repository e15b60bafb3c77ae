//! The contexts of a driver with their streams and events, and the devices that they belong to.
//!
//! [`Contexts`] owns all of them: other parts of the driver name them by id, and ask or change them
//! through its methods. Each of the modules has the methods of one kind of object.

pub(crate) mod event;
pub(crate) mod failure;
pub(crate) mod green;
pub(crate) mod primary;
pub(crate) mod stack;
pub(crate) mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use curium_sys::CUresult;

use crate::context::Context;
use crate::context::stream::{Class, Stream};
use crate::driver::Driver;
use crate::driver::context::failure::Device;
use crate::handle::{Id, StaleHandle, Table};
use crate::live::{LiveHandles, LiveObject};
use crate::object::event::Event;
use crate::result::Result;

/// `CU_CTX_MAP_HOST`, which every context reports except those of `cuCtxCreate`.
pub(crate) const MAP_HOST: u32 = 8;

/// The maximum stack size of a thread, and the maximum local memory of a kernel; hardware refuses
/// larger values.
pub(crate) const MAX_STACK: usize = (512 << 10) - 1;

/// The contexts, streams and events of a driver, and its devices.
pub(crate) struct Contexts {
    devices: Vec<Device>,
    contexts: Table<Context>,
    streams: Table<Stream>,
    events: Table<Event>,
    numbers: Numbers,
}

/// The numbers of contexts, streams and graphs: those that `cuCtxGetId`, `cuStreamGetId` and
/// `cuGraphGetId` return never repeat.
#[derive(Clone, Default)]
pub(crate) struct Numbers {
    last: Arc<AtomicU64>,
}

impl Numbers {
    pub(crate) fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Driver {
    /// Returns the current context's handle, even if the context is not valid any more.
    pub(crate) fn current(&self) -> Result<Id<Context>> {
        self.thread()
            .top()
            .ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)
    }
}

impl Contexts {
    /// Creates devices without contexts.
    pub(crate) fn new(devices: u32, numbers: Numbers) -> Self {
        Self {
            devices: (0..devices).map(|_| Device::default()).collect(),
            contexts: Table::new(),
            streams: Table::new(),
            events: Table::new(),
            numbers,
        }
    }

    /// Returns a context that is not destroyed.
    pub(crate) fn live_context(&self, id: Id<Context>) -> Result<&Context> {
        match self.contexts.get(id) {
            Some(context) if context.is_active() => Ok(context),
            Some(_) => Err(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED),
            None if self.contexts.classify_stale(id) == StaleHandle::Unknown => {
                Err(CUresult::CUDA_ERROR_INVALID_CONTEXT)
            }
            None => Err(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED),
        }
    }

    /// Returns a context that is not destroyed and whose device has not failed.
    pub(crate) fn valid_context(&self, id: Id<Context>) -> Result<&Context> {
        let context = self.live_context(id)?;
        self.check_device(context.device())?;
        Ok(context)
    }

    /// Returns a context that is not destroyed and whose device has not failed, for modification.
    pub(crate) fn valid_context_mut(&mut self, id: Id<Context>) -> Result<&mut Context> {
        self.valid_context(id)?;
        self.contexts
            .get_mut(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)
    }

    /// Returns the number of a context, if it ever existed and was not removed.
    pub(crate) fn context_number(&self, id: Id<Context>) -> Option<u64> {
        self.contexts.get(id).map(Context::number)
    }

    /// Creates a context that is current on no thread.
    pub(crate) fn create_context(&mut self, device: usize, flags: u32) -> Id<Context> {
        self.insert_context(Context::new(device, flags, self.numbers.next()))
    }

    /// Adds a context and creates its default streams.
    fn insert_context(&mut self, context: Context) -> Id<Context> {
        let id = self.contexts.insert(context);
        self.create_legacy_stream(id);
        id
    }

    /// Gives a context that has become active its legacy default stream.
    fn create_legacy_stream(&mut self, id: Id<Context>) {
        let number = self.numbers.next();
        let legacy = Stream::new_default(id, Class::Legacy, number);
        let legacy = self.streams.insert(legacy);
        if let Some(context) = self.contexts.get_mut(id) {
            context.set_legacy_stream(legacy);
        }
    }

    /// Removes a created context. Its streams and events remain until
    /// [`remove_objects`](Self::remove_objects).
    pub(crate) fn remove_context(&mut self, id: Id<Context>) {
        self.contexts.remove(id);
    }

    /// Removes the streams and the events of a context that has ended. Returns the streams.
    pub(crate) fn remove_objects(&mut self, context: Id<Context>) -> Vec<Id<Stream>> {
        let streams = self.streams.iter();
        let lost = streams
            .filter(|(_, stream)| stream.context() == context)
            .map(|(id, _)| id)
            .collect();
        self.streams
            .remove_dependents(|stream| stream.context() == context);
        self.events
            .remove_dependents(|event| event.context() == context);
        lost
    }

    /// Returns the other devices whose memory a context can access.
    pub(crate) fn peer_devices(&self, context: Id<Context>) -> Vec<usize> {
        let owner = self.contexts.get(self.owning_context(context));
        let peers = owner.map(Context::peers).unwrap_or_default();
        peers
            .iter()
            .filter_map(|peer| self.contexts.get(*peer))
            .map(Context::device)
            .collect()
    }

    /// Returns the live contexts, streams and events.
    pub(crate) fn live_objects(&self) -> impl Iterator<Item = LiveObject> {
        let contexts = self
            .contexts
            .live_objects("context", Context::is_active, |_| 0);
        let streams = self
            .streams
            .live_objects("stream", Stream::is_created, |stream| {
                stream.context().number()
            });
        let events = self
            .events
            .live_objects("event", |_| true, |event| event.context().number());
        contexts.chain(streams).chain(events)
    }

    /// Counts the live contexts, streams and events.
    pub(crate) fn count_live(&self, live: &mut LiveHandles) {
        let contexts = self.contexts.iter();
        live.contexts = contexts.filter(|(_, context)| context.is_active()).count() as u64;
        let streams = self.streams.iter();
        live.streams = streams.filter(|(_, stream)| stream.is_created()).count() as u64;
        live.events = self.events.iter().count() as u64;
    }
}
