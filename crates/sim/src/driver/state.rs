//! The state of a driver, protected by one lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use curium_sys::CUresult;

use crate::config::Config;
use crate::context::Context;
use crate::context::resource::Descriptor;
use crate::context::stream::{Class, Stream};
use crate::context::ticket::{Target, Ticket};
use crate::driver::capture::Captures;
use crate::driver::graph::Graphs;
use crate::driver::schedule::Schedule;
use crate::driver::texture::Textures;
use crate::handle::{Id, StaleHandle, Table};
use crate::link::Link;
use crate::live::LiveHandles;
use crate::object::event::Event;
use crate::object::function::Function;
use crate::object::kernel::Kernel;
use crate::object::library::Library;
use crate::object::module::Module;
use crate::object::notification::Listener;
use crate::race::Races;
use crate::result::Result;
use crate::{activity, fault};

/// The objects of a driver and their queued work.
pub(crate) struct State {
    pub(crate) devices: Vec<DeviceState>,
    pub(crate) contexts: Table<Context>,
    pub(crate) streams: Table<Stream>,
    pub(crate) captures: Captures,
    pub(crate) events: Table<Event>,
    pub(crate) descriptors: Table<Descriptor>,
    pub(crate) listeners: Table<Listener>,
    pub(crate) modules: Table<Module>,
    pub(crate) functions: Table<Function>,
    pub(crate) libraries: Table<Library>,
    pub(crate) kernels: Table<Kernel>,
    pub(crate) links: Table<Link>,
    pub(crate) textures: Textures,
    pub(crate) graphs: Graphs,
    pub(crate) schedule: Schedule,
    pub(crate) workers_started: bool,
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

/// The state of a device.
#[derive(Default)]
pub(crate) struct DeviceState {
    /// The primary context, from its first retain on, whether it is active or not.
    pub(crate) primary: Option<Id<Context>>,
    /// The flags for the next activation of the primary context.
    pub(crate) primary_flags: u32,
    /// The code of the fault after which the device does no more work.
    sticky: Option<CUresult>,
}

impl State {
    pub(crate) fn new(config: &Config, races: Option<Arc<Races>>) -> Self {
        let numbers = Numbers::default();
        Self {
            devices: (0..config.devices)
                .map(|_| DeviceState::default())
                .collect(),
            contexts: Table::new(),
            streams: Table::new(),
            captures: Captures::default(),
            events: Table::new(),
            descriptors: Table::new(),
            listeners: Table::new(),
            modules: Table::new(),
            functions: Table::new(),
            libraries: Table::new(),
            kernels: Table::new(),
            links: Table::new(),
            textures: Textures::new(),
            graphs: Graphs::new(numbers.clone()),
            schedule: Schedule::new(config.seed, config.workers, races),
            workers_started: false,
            numbers,
        }
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.numbers.next()
    }

    /// Returns a context that is not destroyed.
    pub(crate) fn context(&self, id: Id<Context>) -> Result<&Context> {
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
        let context = self.context(id)?;
        self.check_device(context.device)?;
        Ok(context)
    }

    pub(crate) fn valid_context_mut(&mut self, id: Id<Context>) -> Result<&mut Context> {
        self.valid_context(id)?;
        self.contexts
            .get_mut(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)
    }

    /// Checks that the device has not failed.
    pub(crate) fn check_device(&self, device: usize) -> Result {
        self.sticky_error(device).map_or(Ok(()), Err)
    }

    /// Returns the code of the fault after which the device does no more work.
    pub(crate) fn sticky_error(&self, device: usize) -> Option<CUresult> {
        self.devices.get(device).and_then(|device| device.sticky)
    }

    /// Returns the location of activities of a stream, if they are observed.
    pub(crate) fn activity_location(&self, target: Target) -> Option<activity::Location> {
        if !activity::is_observed() {
            return None;
        }
        Some(activity::Location {
            device: target.device,
            context: self.contexts.get(target.context)?.number,
            stream: target.stream,
        })
    }

    /// Records a sticky fault; the first one remains.
    pub(crate) fn record_sticky_error(&mut self, device: usize, code: CUresult) {
        if let Some(device) = self.devices.get_mut(device) {
            device.sticky = device.sticky.or(Some(code));
        }
    }

    /// Makes all devices fail as if they were lost.
    pub(crate) fn lose_devices(&mut self) {
        for device in 0..self.devices.len() {
            self.record_sticky_error(device, fault::LOST);
        }
    }

    pub(crate) fn clear_sticky(&mut self) {
        for device in &mut self.devices {
            device.sticky = None;
        }
    }

    /// Returns the dependencies of new work in a stream, some of which may have completed.
    pub(crate) fn predecessors(&self, id: Id<Stream>) -> Vec<Ticket> {
        let Some(stream) = self.streams.get(id) else {
            return Vec::new();
        };
        let mut tickets: Vec<Ticket> = stream.tail.into_iter().collect();
        let context = self.contexts.get(stream.context);
        match stream.class {
            Class::NonBlocking => {}
            Class::Blocking => {
                let legacy = context.and_then(|context| self.streams.get(context.legacy));
                tickets.extend(legacy.and_then(|legacy| legacy.tail));
            }
            Class::Legacy => {
                for (_, other) in self.streams.iter() {
                    if other.class == Class::Blocking && other.context == stream.context {
                        tickets.extend(other.tail);
                    }
                }
                if let Some(context) = context {
                    tickets.extend(&context.tails_of_destroyed_streams);
                }
            }
        }
        tickets.sort_unstable();
        tickets
    }

    /// Ends the objects of a context that has ended.
    pub(crate) fn remove_context_objects(&mut self, context: Id<Context>) {
        let lost: Vec<_> = self
            .streams
            .iter()
            .filter(|(_, stream)| stream.context == context)
            .map(|(id, _)| id)
            .collect();
        self.abandon_captures(|origin| lost.contains(&origin));
        self.streams
            .remove_dependents(|stream| stream.context == context);
        self.events
            .remove_dependents(|event| event.context == context);
        self.textures.remove_context(context);
        for module in self
            .modules
            .remove_dependents(|module| module.context == context)
        {
            for function in module.functions {
                self.functions.remove(function);
            }
        }
    }

    pub(crate) fn count_live(&self, live: &mut LiveHandles) {
        live.contexts = self
            .contexts
            .iter()
            .filter(|(_, context)| context.is_active())
            .count() as u64;
        live.streams = self
            .streams
            .iter()
            .filter(|(_, stream)| stream.is_created)
            .count() as u64;
        live.events = self.events.iter().count() as u64;
        live.listeners = self.listeners.iter().count() as u64;
        live.modules = self
            .modules
            .iter()
            .filter(|(_, module)| module.library.is_none())
            .count() as u64;
        live.libraries = self.libraries.iter().count() as u64;
        live.links = self.links.iter().count() as u64;
        self.textures.count_live(live);
        self.graphs.count_live(live);
    }

    /// Returns the per-thread default stream of a thread in a context, created on first use.
    pub(crate) fn per_thread_stream(
        &mut self,
        context: Id<Context>,
        thread: u64,
    ) -> Result<Id<Stream>> {
        if let Some(stream) = self.valid_context(context)?.per_thread.get(&thread) {
            return Ok(*stream);
        }
        let number = self.next_number();
        let stream = self
            .streams
            .insert(Stream::new_default(context, Class::Blocking, number));
        self.valid_context_mut(context)?
            .per_thread
            .insert(thread, stream);
        Ok(stream)
    }

    /// Creates a context that is current on no thread.
    pub(crate) fn new_context(
        &mut self,
        device: usize,
        flags: u32,
        is_primary: bool,
    ) -> Id<Context> {
        let number = self.next_number();
        let context = Context::new(device, flags, is_primary, number);
        let id = self.contexts.insert(context);
        self.create_default_streams(id);
        id
    }

    /// Gives a context that has become active its default streams.
    pub(crate) fn create_default_streams(&mut self, id: Id<Context>) {
        let number = self.next_number();
        let legacy = self
            .streams
            .insert(Stream::new_default(id, Class::Legacy, number));
        if let Some(context) = self.contexts.get_mut(id) {
            context.legacy = legacy;
            context.per_thread = HashMap::new();
        }
    }
}
