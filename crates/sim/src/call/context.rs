//! The C functions for contexts.

pub(super) mod create;
mod limits;
mod primary;
mod settings;
mod stack;

use curium_sys::{CUcontext, CUctx_st, CUdevice, CUevent_st, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::call::context::create::{COREDUMPS, checked_flags};
use crate::context::Context;
use crate::context::stream::Stream;
use crate::driver::context::MAP_HOST;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::result::Result;

/// The version of the interface that `cuCtxGetApiVersion` reports for contexts of `cuCtxCreate_v2`
/// and later.
const API_VERSION: u32 = 3020;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuCtxGetDevice(&self, device: Pointer<CUdevice>) -> Result {
        let output = device.required()?;
        let current = self.current()?;
        output.write(self.lock().contexts.live_context(current)?.device() as CUdevice)
    }

    pub(crate) fn cuCtxGetDevice_v2(
        &self,
        device: Pointer<CUdevice>,
        context: Pointer<CUctx_st>,
    ) -> Result {
        let output = device.required()?;
        let context = self.handle_or_current(context)?;
        output.write(self.lock().contexts.live_context(context)?.device() as CUdevice)
    }

    pub(crate) fn cuCtxGetFlags(&self, flags: Pointer<u32>) -> Result {
        let output = flags.required()?;
        let (state, current) = self.enter_current()?;
        output.write(
            state
                .contexts
                .valid_context(state.contexts.owning_context(current))?
                .flags(),
        )
    }

    pub(crate) fn cuCtxSetFlags(&self, flags: u32) -> Result {
        let (mut state, current) = self.enter_current()?;
        let owning_context = state.contexts.owning_context(current);
        state
            .contexts
            .valid_context_mut(owning_context)?
            .set_flags(checked_flags(flags)? & !COREDUMPS | MAP_HOST);
        Ok(())
    }

    pub(crate) fn cuCtxGetId(&self, context: Pointer<CUctx_st>, id: Pointer<u64>) -> Result {
        let output = id.required()?;
        let context = self.handle_or_current(context)?;
        output.write(self.lock().contexts.valid_context(context)?.number())
    }

    pub(crate) fn cuCtxGetApiVersion(
        &self,
        context: Pointer<CUctx_st>,
        version: Pointer<u32>,
    ) -> Result {
        let output = version.required()?;
        let context = self.handle_or_current(context)?;
        self.lock().contexts.valid_context(context)?;
        output.write(API_VERSION)
    }

    pub(crate) fn cuCtxGetStreamPriorityRange(
        &self,
        least: Pointer<i32>,
        greatest: Pointer<i32>,
    ) -> Result {
        self.require_current()?;
        least.write_if_not_null(Stream::PRIORITIES.0);
        greatest.write_if_not_null(Stream::PRIORITIES.1);
        Ok(())
    }

    pub(crate) fn cuCtxSynchronize(&self) -> Result {
        let (state, current) = self.enter_current()?;
        state.synchronize_context(current)
    }

    pub(crate) fn cuCtxSynchronize_v2(&self, context: Pointer<CUctx_st>) -> Result {
        let context = self.handle_or_current(context)?;
        let state = self.lock();
        state.contexts.valid_context(context)?;
        state.synchronize_context(context)
    }

    /// Records an event after all work of a context, including work of the legacy stream that waits
    /// for non-blocking streams.
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

impl Call<'_> {
    /// Checks that the current context is valid.
    pub(crate) fn require_current(&self) -> Result {
        self.enter_current().map(|_| ())
    }

    /// Returns the locked state with the current context, which must be valid.
    pub(crate) fn enter_current(&self) -> Result<(Locked<'_>, Id<Context>)> {
        let current = self.current()?;
        let state = self.lock();
        state.contexts.valid_context(current)?;
        Ok((state, current))
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
        let stream = state.contexts.valid_context(context)?.legacy_stream();
        state.contexts.valid_event(event)?;
        state.check_uncaptured_context(context)?;
        let pending = state
            .schedule
            .unobserved(|target| state.contexts.is_within(target.context, context));
        state.record_after(event, stream, &pending)
    }

    /// Makes all later work of a context, including its green contexts, wait for an event.
    pub(crate) fn wait_in_context(
        &self,
        context: Id<Context>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let mut state = self.lock();
        state.contexts.valid_context(context)?;
        state.check_uncaptured_context(context)?;
        let (_, event) = state.contexts.valid_event(event)?;
        let ticket = event.ticket();
        let remote_record = event.remote_record();
        for stream in state.contexts.streams_within(context) {
            state.wait_in_stream(stream, ticket);
            state.wait_for_remote_in_stream(stream, remote_record.clone());
        }
        Ok(())
    }

    /// Returns the handle of the current context for C, or null without one.
    pub(crate) fn current_raw(&self) -> CUcontext {
        self.thread().top().map_or(std::ptr::null_mut(), Id::as_raw)
    }
}

impl Locked<'_> {
    /// Waits for all work of a context, and trims the memory pools.
    fn synchronize_context(mut self, context: Id<Context>) -> Result {
        self.check_uncaptured_context(context)?;
        self.check_potentially_unsafe_call()?;
        let pending = self
            .schedule
            .unobserved(|target| self.contexts.is_within(target.context, context));
        let mut state = self.wait(&pending)?;
        state
            .contexts
            .valid_context_mut(context)?
            .forget_destroyed_streams();
        state.unlock().memory().trim_pools();
        Ok(())
    }

    /// Waits for all work of a device, even if the device has failed.
    pub(crate) fn wait_for_device(self, device: usize) -> Result<Self> {
        let pending = self.schedule.unobserved(|target| target.device == device);
        self.wait(&pending)
    }

    /// Destroys the objects of a context that has ended.
    pub(crate) fn end_objects(&mut self, context: Id<Context>) {
        let driver = self.driver();
        self.remove_context_objects(context);
        driver.memory().free_context_memory(context);
    }
}
