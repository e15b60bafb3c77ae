//! Primary contexts: one per device, retained and released.

use curium_sys::{CUcontext, CUdevice, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::call::context::create::checked_flags;
use crate::context::Context;
use crate::driver::context::MAP_HOST;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuDevicePrimaryCtxRetain(
        &self,
        context: Pointer<CUcontext>,
        device: CUdevice,
    ) -> Result {
        let device = self.devices().device(device)?;
        let output = context.required()?;
        let mut state = self.lock();
        state.contexts.check_device(device)?;
        output.write(state.contexts.retain_primary(device).as_raw())
    }

    pub(crate) fn cuDevicePrimaryCtxRelease_v2(&self, device: CUdevice) -> Result {
        let device = self.devices().device(device)?;
        let state = self.lock();
        let (_, retained) = state
            .contexts
            .primary_context(device)
            .ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?;
        // Retentions by green contexts are separate.
        if retained == state.contexts.green_contexts(device) {
            return Err(CUresult::CUDA_ERROR_NOT_PERMITTED);
        }
        state.release_primary(device)
    }

    pub(crate) fn cuDevicePrimaryCtxReset_v2(&self, device: CUdevice) -> Result {
        let device = self.devices().device(device)?;
        let state = self.lock();
        match state.contexts.primary_context(device) {
            Some((id, _)) => state.leave_primary(id, 0),
            None => Ok(()),
        }
    }

    pub(crate) fn cuDevicePrimaryCtxGetState(
        &self,
        device: CUdevice,
        flags: Pointer<u32>,
        active: Pointer<i32>,
    ) -> Result {
        let flags = flags.required()?;
        let active = active.required()?;
        let device = self.devices().device(device)?;
        let state = self.lock();
        flags.write(state.contexts.primary_flags(device))?;
        active.write(i32::from(state.contexts.primary_context(device).is_some()))
    }

    pub(crate) fn cuDevicePrimaryCtxSetFlags_v2(&self, device: CUdevice, flags: u32) -> Result {
        let device = self.devices().device(device)?;
        let flags = checked_flags(flags)?;
        // A primary context always maps host memory, without the flag.
        if flags & MAP_HOST != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.lock().contexts.set_primary_flags(device, flags);
        Ok(())
    }

    /// Succeeds for a context that is not active, unlike the second version.
    pub(crate) fn cuDevicePrimaryCtxRelease(&self, device: CUdevice) -> Result {
        let ordinal = self.devices().device(device)?;
        if self.lock().contexts.primary_context(ordinal).is_none() {
            return Ok(());
        }
        self.cuDevicePrimaryCtxRelease_v2(device)
    }

    pub(crate) fn cuDevicePrimaryCtxReset(&self, device: CUdevice) -> Result {
        self.cuDevicePrimaryCtxReset_v2(device)
    }

    pub(crate) fn cuDevicePrimaryCtxSetFlags(&self, device: CUdevice, flags: u32) -> Result {
        let ordinal = self.devices().device(device)?;
        checked_flags(flags)?;
        // The second version changes the flags of an active context instead.
        if self.lock().contexts.primary_context(ordinal).is_some() {
            return Err(CUresult::CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
        }
        self.cuDevicePrimaryCtxSetFlags_v2(device, flags)
    }
}

impl Call<'_> {
    /// Calls `call` with the primary context of a device current, which is retained if it is not
    /// active.
    pub(crate) fn with_primary<T>(&self, device: CUdevice, call: impl FnOnce() -> T) -> Result<T> {
        let device = self.devices().device(device)?;
        let mut state = self.lock();
        state.contexts.check_device(device)?;
        let id = match state.contexts.primary_context(device) {
            Some((id, _)) => id,
            None => state.contexts.retain_primary(device),
        };
        drop(state);
        self.thread().push(id);
        let result = call();
        self.thread().pop();
        Ok(result)
    }
}

impl Locked<'_> {
    /// Ends one retention of the primary context.
    pub(crate) fn release_primary(self, device: usize) -> Result {
        let (id, retained) = self
            .contexts
            .primary_context(device)
            .ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?;
        self.leave_primary(id, retained - 1)
    }

    /// Sets the retain count of the primary context; at 0 it ends, after its work.
    fn leave_primary(mut self, id: Id<Context>, retained: u32) -> Result {
        if retained == 0 {
            let pending = self.schedule.unobserved(|target| target.context == id);
            self = self.wait(&pending)?;
            self.end_objects(id);
        }
        self.contexts.set_retained(id, retained);
        Ok(())
    }
}
