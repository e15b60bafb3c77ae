//! The C functions for green contexts.
//!
//! A green context has its own streams. Memory, events, code and settings are those of the primary
//! context, which it retains: [`State::owning_context`].

use curium_sys::{
    CUcontext, CUdevResourceDesc_st, CUdevice, CUevent_st, CUgreenCtx, CUgreenCtx_st,
    CUgreenCtxCreate_flags, CUresult, CUstream, CUstream_st, CudaVersion,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::handle::Id;
use crate::result::Result;

/// The first driver that creates green contexts without a default stream.
const NO_DEFAULT_STREAM_SINCE: CudaVersion = CudaVersion::new(13, 1);

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGreenCtxCreate(
        &self,
        context: Pointer<CUgreenCtx>,
        descriptor: Pointer<CUdevResourceDesc_st>,
        device: CUdevice,
        flags: u32,
    ) -> Result {
        let output = context.required()?;
        let device = self.devices().device(device)?;
        let default_stream = CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM.0;
        let is_valid = match flags {
            0 => self.config().driver_version >= NO_DEFAULT_STREAM_SINCE,
            _ => flags == default_stream,
        };
        if !is_valid {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let mut state = self.lock();
        state.contexts.check_device(device)?;
        let resources = state
            .descriptors
            .get(Id::from(descriptor))
            .filter(|descriptor| descriptor.device == device)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?
            .resources;
        state.contexts.retain_primary(device);
        let id = state.contexts.create_context(device, 0);
        state
            .contexts
            .valid_context_mut(id)?
            .set_green_resources(resources);
        output.write(id.as_raw().cast())
    }

    pub(crate) fn cuGreenCtxDestroy(&self, context: Pointer<CUgreenCtx_st>) -> Result {
        let state = self.lock();
        let id = state.contexts.green_context(context)?;
        let device = state.contexts.valid_context(id)?.device();
        let pending = state.schedule.unobserved(|target| target.context == id);
        let mut state = state.wait(&pending)?;
        state.contexts.remove_context(id);
        state.remove_context_objects(id);
        state.release_primary(device)
    }

    pub(crate) fn cuCtxFromGreenCtx(
        &self,
        context: Pointer<CUcontext>,
        green: Pointer<CUgreenCtx_st>,
    ) -> Result {
        let output = context.required()?;
        output.write(self.lock().contexts.green_context(green)?.as_raw())
    }

    pub(crate) fn cuGreenCtxGetId(
        &self,
        green: Pointer<CUgreenCtx_st>,
        id: Pointer<u64>,
    ) -> Result {
        let output = id.required()?;
        let state = self.lock();
        let green = state.contexts.green_context(green)?;
        output.write(state.contexts.valid_context(green)?.number())
    }

    pub(crate) fn cuGreenCtxRecordEvent(
        &self,
        green: Pointer<CUgreenCtx_st>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let green = self.lock().contexts.green_context(green)?;
        self.record_in_context(green, event)
    }

    pub(crate) fn cuGreenCtxWaitEvent(
        &self,
        green: Pointer<CUgreenCtx_st>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let green = self.lock().contexts.green_context(green)?;
        self.wait_in_context(green, event)
    }

    pub(crate) fn cuGreenCtxStreamCreate(
        &self,
        stream: Pointer<CUstream>,
        green: Pointer<CUgreenCtx_st>,
        flags: u32,
        priority: i32,
    ) -> Result {
        stream.required()?;
        let green = self.lock().contexts.green_context(green)?;
        // Streams of green contexts must be non-blocking: they never wait for a default stream.
        if flags == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // The stream is created in the current context.
        self.thread().push(green);
        let result = self.cuStreamCreateWithPriority(stream, flags, priority);
        self.thread().pop();
        result
    }

    pub(crate) fn cuStreamGetGreenCtx(
        &self,
        stream: Pointer<CUstream_st>,
        green: Pointer<CUgreenCtx>,
    ) -> Result {
        let output = green.required()?;
        let mut state = self.lock();
        let stream = state.queried_stream(stream)?;
        let context = state.contexts.stream_context(stream)?;
        let is_green = state.contexts.valid_context(context)?.is_green();
        output.write(if is_green {
            context.as_raw().cast()
        } else {
            std::ptr::null_mut()
        })
    }

    /// Writes the primary context of a stream, and its green context if it has one.
    pub(crate) fn cuStreamGetCtx_v2(
        &self,
        stream: Pointer<CUstream_st>,
        context: Pointer<CUcontext>,
        green: Pointer<CUgreenCtx>,
    ) -> Result {
        if context.is_null() && green.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let mut state = self.lock();
        let stream = state.queried_stream(stream)?;
        let stream_context = state.contexts.stream_context(stream)?;
        let is_green = state.contexts.valid_context(stream_context)?.is_green();
        context.write_if_not_null(state.contexts.owning_context(stream_context).as_raw());
        green.write_if_not_null(if is_green {
            stream_context.as_raw().cast()
        } else {
            std::ptr::null_mut()
        });
        Ok(())
    }
}
