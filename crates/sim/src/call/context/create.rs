//! Created contexts.

use curium_sys::{CUcontext, CUctx_st, CUctxCreateParams, CUdevice, CUexecAffinityParam, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::context::Context;
use crate::handle::Id;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuCtxCreate_v2(
        &self,
        context: Pointer<CUcontext>,
        flags: u32,
        device: CUdevice,
    ) -> Result {
        let device = self.devices().device(device)?;
        let output = context.required()?;
        let flags = created_flags(checked_flags(flags)?);
        let mut state = self.lock();
        state.contexts.check_device(device)?;
        let id = state.contexts.create_context(device, flags);
        drop(state);
        self.thread().push(id);
        output.write(id.as_raw())
    }

    pub(crate) fn cuCtxCreate_v3(
        &self,
        context: Pointer<CUcontext>,
        affinities: Pointer<CUexecAffinityParam>,
        count: i32,
        flags: u32,
        device: CUdevice,
    ) -> Result {
        self.devices().device(device)?;
        if count != 0 {
            affinities.required()?;
            return Err(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
        }
        self.cuCtxCreate_v2(context, flags, device)
    }

    pub(crate) fn cuCtxCreate_v4(
        &self,
        context: Pointer<CUcontext>,
        parameters: Pointer<CUctxCreateParams>,
        flags: u32,
        device: CUdevice,
    ) -> Result {
        self.devices().device(device)?;
        context.required()?;
        if !parameters.is_null() {
            let parameters = parameters.read()?;
            if !parameters.cigParams.is_null() {
                return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
            }
            if parameters.numExecAffinityParams != 0 {
                return Err(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
            }
        }
        self.cuCtxCreate_v2(context, flags, device)
    }

    pub(crate) fn cuCtxDestroy_v2(&self, context: Pointer<CUctx_st>) -> Result {
        self.destroy_context(Id::from(context.required()?))
    }
}

impl Call<'_> {
    /// Destroys a created context after its work.
    pub(crate) fn destroy_context(&self, id: Id<Context>) -> Result {
        let state = self.lock();
        let context = state.contexts.valid_context(id)?;
        if context.is_primary() || context.is_green() {
            return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
        }
        let pending = state.schedule.unobserved(|target| target.context == id);
        let mut state = state.wait(&pending)?;
        state.contexts.remove_context(id);
        state.end_objects(id);
        drop(state);
        if self.thread().top() == Some(id) {
            self.thread().pop();
        }
        Ok(())
    }
}

/// The flags of core dumps, which only the contexts of `cuCtxCreate` report.
pub(crate) const COREDUMPS: u32 = 0x60;

const USER_COREDUMP: u32 = 0x40;

/// Converts the flags that a context is created with to those that it reports: the flag of
/// user-triggered core dumps is reported as that of core dumps.
fn created_flags(flags: u32) -> u32 {
    if flags & USER_COREDUMP == 0 {
        flags
    } else {
        flags & !USER_COREDUMP | 0x20
    }
}

/// Returns the flags of a context, if all of them are valid.
pub(crate) fn checked_flags(flags: u32) -> Result<u32> {
    const ALL: u32 = 0xff;
    let scheduling = flags & 7;
    if flags & !ALL == 0 && matches!(scheduling, 0 | 1 | 2 | 4) {
        Ok(flags)
    } else {
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    }
}
