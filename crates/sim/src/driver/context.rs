//! Contexts.

mod create;
mod limits;
mod primary;
mod settings;
mod stack;

use std::collections::HashMap;

use crate::lock::MutexGuard;
use curium_sys::{CUcontext, CUctx_st, CUdevice, CUevent_st, CUfunc_cache, CUresult};

pub(crate) use self::create::checked_flags;
pub(crate) use self::limits::{Limits, MAX_STACK};
use crate::argument::Pointer;
use crate::driver::launch::KernelHeap;
use crate::driver::{Driver, Resources, Result, State, Stream};
use crate::handle::{Id, Kind, Object};
use crate::schedule::Ticket;

/// A context, which owns streams, events, modules and memory on a device.
pub(crate) struct Context {
    pub(crate) device: usize,
    flags: u32,
    is_primary: bool,
    /// The number of times that a primary context is retained; for a created one, 1 more than it was attached.
    pub(crate) retained: u32,
    pub(crate) number: u64,
    pub(crate) legacy: Id<Stream>,
    /// The per-thread default streams.
    pub(crate) per_thread: HashMap<u64, Id<Stream>>,
    /// The legacy default stream waits for these too.
    pub(crate) tails_of_destroyed_streams: Vec<Ticket>,
    limits: Limits,
    cache_config: CUfunc_cache,
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

/// The version of the interface that `cuCtxGetApiVersion` reports for contexts of `cuCtxCreate_v2` and later.
const API_VERSION: u32 = 3020;

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

    /// Returns `true` if the context exists; a primary context keeps its handle after the last release.
    pub(crate) fn is_active(&self) -> bool {
        self.retained > 0
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.is_primary
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuCtxGetDevice(&self, device: Pointer<CUdevice>) -> Result {
        let output = device.required()?;
        let current = self.current()?;
        output.write(self.lock().context(current)?.device as CUdevice)
    }

    pub(crate) fn cuCtxGetDevice_v2(
        &self,
        device: Pointer<CUdevice>,
        context: Pointer<CUctx_st>,
    ) -> Result {
        let output = device.required()?;
        let context = self.handle_or_current(context)?;
        output.write(self.lock().context(context)?.device as CUdevice)
    }

    pub(crate) fn cuCtxGetFlags(&self, flags: Pointer<u32>) -> Result {
        let output = flags.required()?;
        let (state, current) = self.enter_current()?;
        output.write(state.valid_context(state.owning_context(current))?.flags)
    }

    pub(crate) fn cuCtxSetFlags(&self, flags: u32) -> Result {
        let (mut state, current) = self.enter_current()?;
        let owning_context = state.owning_context(current);
        state.valid_context_mut(owning_context)?.flags =
            checked_flags(flags)? & !create::COREDUMPS | create::MAP_HOST;
        Ok(())
    }

    pub(crate) fn cuCtxGetId(&self, context: Pointer<CUctx_st>, id: Pointer<u64>) -> Result {
        let output = id.required()?;
        let context = self.handle_or_current(context)?;
        output.write(self.lock().valid_context(context)?.number)
    }

    pub(crate) fn cuCtxGetApiVersion(
        &self,
        context: Pointer<CUctx_st>,
        version: Pointer<u32>,
    ) -> Result {
        let output = version.required()?;
        let context = self.handle_or_current(context)?;
        self.lock().valid_context(context)?;
        output.write(API_VERSION)
    }

    pub(crate) fn cuCtxGetStreamPriorityRange(
        &self,
        least: Pointer<i32>,
        greatest: Pointer<i32>,
    ) -> Result {
        self.require_current()?;
        least.write_if_not_null(Limits::STREAM_PRIORITIES.0);
        greatest.write_if_not_null(Limits::STREAM_PRIORITIES.1);
        Ok(())
    }

    pub(crate) fn cuCtxSynchronize(&self) -> Result {
        let (state, current) = self.enter_current()?;
        self.synchronize_context(state, current)
    }

    pub(crate) fn cuCtxSynchronize_v2(&self, context: Pointer<CUctx_st>) -> Result {
        let context = self.handle_or_current(context)?;
        let state = self.lock();
        state.valid_context(context)?;
        self.synchronize_context(state, context)
    }

    /// Records an event after all work of a context, including work of the legacy stream that waits for non-blocking streams.
    pub(crate) fn cuCtxRecordEvent(
        &self,
        context: Pointer<CUctx_st>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let context = named_context(context)?;
        self.record_in_context(context, event)
    }

    /// Makes all later work of a context wait for an event.
    pub(crate) fn cuCtxWaitEvent(
        &self,
        context: Pointer<CUctx_st>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let context = named_context(context)?;
        self.wait_in_context(context, event)
    }
}

/// Returns the context of a handle; null does not stand for the current context.
pub(crate) fn named_context(context: Pointer<CUctx_st>) -> Result<Id<Context>> {
    if context.is_null() {
        return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
    }
    Ok(Id::from(context))
}

impl Driver {
    /// Returns the current context's handle, even if the context is not valid any more.
    pub(crate) fn current(&self) -> Result<Id<Context>> {
        self.top().ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)
    }

    /// Returns the locked state with the current context, which must be valid.
    pub(crate) fn enter_current(&self) -> Result<(MutexGuard<'_, State>, Id<Context>)> {
        let current = self.current()?;
        let state = self.lock();
        state.valid_context(current)?;
        Ok((state, current))
    }

    /// Checks that the current context is valid.
    pub(crate) fn require_current(&self) -> Result {
        self.enter_current().map(|_| ())
    }

    /// Returns the context of a handle, or the current one for a null handle.
    pub(crate) fn handle_or_current(&self, context: Pointer<CUctx_st>) -> Result<Id<Context>> {
        if context.is_null() {
            self.current()
        } else {
            Ok(Id::from(context))
        }
    }

    /// Records an event after all work of a context, including its green contexts.
    pub(crate) fn record_in_context(
        &self,
        context: Id<Context>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let mut state = self.lock();
        let stream = state.valid_context(context)?.legacy;
        state.event(event)?;
        self.expect_uncaptured_context(&mut state, context)?;
        let pending = state
            .schedule
            .unobserved(|target| state.is_within(target.context, context));
        self.record_after(&mut state, event, stream, &pending)
    }

    /// Makes all later work of a context, including its green contexts, wait for an event.
    pub(crate) fn wait_in_context(
        &self,
        context: Id<Context>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let mut state = self.lock();
        state.valid_context(context)?;
        self.expect_uncaptured_context(&mut state, context)?;
        let (_, event) = state.event(event)?;
        let ticket = event.ticket;
        let remote_record = event.remote_record();
        let streams = state
            .streams
            .iter()
            .filter(|(_, stream)| state.is_within(stream.context, context));
        for stream in streams.map(|(id, _)| id).collect::<Vec<_>>() {
            self.wait_in_stream(&mut state, stream, ticket);
            self.wait_for_remote_in_stream(&mut state, stream, remote_record.clone());
        }
        Ok(())
    }

    fn synchronize_context(
        &self,
        mut state: MutexGuard<'_, State>,
        context: Id<Context>,
    ) -> Result {
        self.expect_uncaptured_context(&mut state, context)?;
        self.permit_unsafe(&mut state)?;
        let pending = state
            .schedule
            .unobserved(|target| state.is_within(target.context, context));
        let mut state = self.wait(state, &pending)?;
        state
            .valid_context_mut(context)?
            .tails_of_destroyed_streams
            .clear();
        drop(state);
        self.memory().trim_pools();
        Ok(())
    }

    /// Destroys the objects of a context that has ended.
    fn end_objects(&self, state: &mut State, context: Id<Context>) {
        state.remove_context_objects(context);
        self.memory().free_context_memory(context);
    }

    /// Waits for all work of a device, even if the device has failed.
    pub(crate) fn wait_for_device<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        device: usize,
    ) -> Result<MutexGuard<'a, State>> {
        let pending = state.schedule.unobserved(|target| target.device == device);
        self.wait(state, &pending)
    }

    /// Returns the handle of the current context for C, or null without one.
    fn current_raw(&self) -> CUcontext {
        self.top().map_or(std::ptr::null_mut(), Id::as_raw)
    }
}
