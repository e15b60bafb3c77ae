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
    pub(crate) device: usize,
    pub(crate) flags: u32,
    pub(crate) is_primary: bool,
    /// The number of times that a primary context is retained; for a created one, 1 more than it
    /// was attached.
    pub(crate) retained: u32,
    pub(crate) number: u64,
    pub(crate) legacy: Id<Stream>,
    /// The per-thread default streams.
    pub(crate) per_thread: HashMap<u64, Id<Stream>>,
    /// The legacy default stream waits for these too.
    pub(crate) tails_of_destroyed_streams: Vec<Ticket>,
    pub(crate) limits: Limits,
    pub(crate) cache_config: CUfunc_cache,
    /// The contexts whose memory is accessible from this one.
    pub(crate) peers: Vec<Id<Context>>,
    /// The heap that kernels allocate from, created on first use.
    pub(crate) kernel_heap: Option<KernelHeap>,
    /// The resources of a green context.
    pub(crate) green: Option<Resources>,
}

impl Object for Context {
    type Raw = CUctx_st;
    const KIND: Kind = Kind::Context;
}

impl Context {
    pub(crate) fn new(device: usize, flags: u32, is_primary: bool, number: u64) -> Self {
        Self {
            device,
            flags,
            is_primary,
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

    /// Returns the value of a limit.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the limits for modification.
    pub(crate) fn limits_mut(&mut self) -> &mut Limits {
        &mut self.limits
    }

    /// Returns `true` if the context exists; a primary context keeps its handle after the last
    /// release.
    pub(crate) fn is_active(&self) -> bool {
        self.retained > 0
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.is_primary
    }
}
