//! Contexts.

pub(crate) mod kernel_heap;
pub(crate) mod limits;
pub(crate) mod resource;
pub(crate) mod stream;
pub(crate) mod stream_attribute;
pub(crate) mod ticket;

use std::collections::HashMap;

use curium_sys::{CUctx_st, CUfunc_cache};

use crate::context::kernel_heap::KernelHeap;
use crate::context::limits::Limits;
use crate::context::resource::Resources;
use crate::context::stream::Stream;
use crate::context::ticket::Ticket;
use crate::handle::{Id, Kind, Object};

/// A context, which owns streams, events, modules and memory on a device.
pub(crate) struct Context {
    device: usize,
    flags: u32,
    is_primary: bool,
    /// The number of times that a primary context is retained; for a created one, 1 more than it
    /// was attached.
    retained: u32,
    number: u64,
    legacy: Id<Stream>,
    /// The per-thread default streams.
    per_thread: HashMap<u64, Id<Stream>>,
    /// The legacy default stream waits for these too.
    tails_of_destroyed_streams: Vec<Ticket>,
    limits: Limits,
    cache_config: CUfunc_cache,
    /// The contexts whose memory is accessible from this one.
    peers: Vec<Id<Context>>,
    /// The heap that kernels allocate from, created on first use.
    kernel_heap: Option<KernelHeap>,
    /// The resources of a green context.
    green: Option<Resources>,
}

impl Object for Context {
    type Raw = CUctx_st;
    const KIND: Kind = Kind::Context;
}

impl Context {
    /// Creates a context without streams.
    pub(crate) fn new(device: usize, flags: u32, number: u64) -> Self {
        Self {
            device,
            flags,
            is_primary: false,
            retained: 1,
            number,
            legacy: Id::from_number(0),
            per_thread: HashMap::new(),
            tails_of_destroyed_streams: Vec::new(),
            limits: Limits::default(),
            cache_config: CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE,
            peers: Vec::new(),
            kernel_heap: None,
            green: None,
        }
    }

    /// Creates the primary context of a device, without streams.
    pub(crate) fn new_primary(device: usize, flags: u32, number: u64) -> Self {
        Self {
            is_primary: true,
            ..Self::new(device, flags, number)
        }
    }

    pub(crate) fn device(&self) -> usize {
        self.device
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn flags(&self) -> u32 {
        self.flags
    }

    pub(crate) fn set_flags(&mut self, flags: u32) {
        self.flags = flags;
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.is_primary
    }

    /// Returns `true` if the context exists; a primary context keeps its handle after the last
    /// release.
    pub(crate) fn is_active(&self) -> bool {
        self.retained > 0
    }

    /// Returns the number of times that the context is retained or attached.
    pub(crate) fn retained(&self) -> u32 {
        self.retained
    }

    pub(crate) fn retain(&mut self) {
        self.retained += 1;
    }

    pub(crate) fn set_retained(&mut self, retained: u32) {
        self.retained = retained;
    }

    /// Returns `true` for a green context.
    pub(crate) fn is_green(&self) -> bool {
        self.green.is_some()
    }

    /// Returns the resources of a green context.
    pub(crate) fn green_resources(&self) -> Option<Resources> {
        self.green
    }

    /// Makes it a green context with these resources.
    pub(crate) fn set_green_resources(&mut self, resources: Resources) {
        self.green = Some(resources);
    }

    pub(crate) fn legacy_stream(&self) -> Id<Stream> {
        self.legacy
    }

    /// Sets the legacy default stream of a context that has become active.
    pub(crate) fn set_legacy_stream(&mut self, stream: Id<Stream>) {
        self.legacy = stream;
        self.per_thread = HashMap::new();
    }

    /// Returns the per-thread default stream of a thread, if it was used.
    pub(crate) fn per_thread_stream(&self, thread: u64) -> Option<Id<Stream>> {
        self.per_thread.get(&thread).copied()
    }

    pub(crate) fn add_per_thread_stream(&mut self, thread: u64, stream: Id<Stream>) {
        self.per_thread.insert(thread, stream);
    }

    /// Returns the last work of destroyed streams, which the legacy default stream waits for.
    pub(crate) fn tails_of_destroyed_streams(&self) -> &[Ticket] {
        &self.tails_of_destroyed_streams
    }

    pub(crate) fn keep_tail_of_destroyed_stream(&mut self, tail: Ticket) {
        self.tails_of_destroyed_streams.push(tail);
    }

    /// Forgets the last work of destroyed streams, which has completed.
    pub(crate) fn forget_destroyed_streams(&mut self) {
        self.tails_of_destroyed_streams.clear();
    }

    /// Returns the value of a limit.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the limits for modification.
    pub(crate) fn limits_mut(&mut self) -> &mut Limits {
        &mut self.limits
    }

    pub(crate) fn cache_config(&self) -> CUfunc_cache {
        self.cache_config
    }

    pub(crate) fn set_cache_config(&mut self, config: CUfunc_cache) {
        self.cache_config = config;
    }

    /// Returns the contexts whose memory is accessible from this one.
    pub(crate) fn peers(&self) -> &[Id<Context>] {
        &self.peers
    }

    /// Makes the memory of a context accessible. Returns `false` if it is already.
    pub(crate) fn add_peer(&mut self, peer: Id<Context>) -> bool {
        let is_new = !self.peers.contains(&peer);
        if is_new {
            self.peers.push(peer);
        }
        is_new
    }

    /// Makes the memory of a context inaccessible. Returns `false` if it is already.
    pub(crate) fn remove_peer(&mut self, peer: Id<Context>) -> bool {
        let index = self.peers.iter().position(|enabled| *enabled == peer);
        if let Some(index) = index {
            self.peers.swap_remove(index);
        }
        index.is_some()
    }

    /// Returns the heap that kernels allocate from, if it was used.
    pub(crate) fn kernel_heap(&mut self) -> Option<&mut KernelHeap> {
        self.kernel_heap.as_mut()
    }

    pub(crate) fn set_kernel_heap(&mut self, heap: KernelHeap) {
        self.kernel_heap = Some(heap);
    }
}
