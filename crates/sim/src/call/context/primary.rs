//! Primary contexts: one per device, retained and released.

use curium_sys::{CUcontext, CUdevice, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::call::context::create::checked_flags;
use crate::context::Context;
use crate::driver::context::create::MAP_HOST;
use crate::driver::state::State;
use crate::handle::Id;
use crate::lock::MutexGuard;
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
        let device = self.device(device)?;
        let output = context.required()?;
        let mut state = self.lock();
        state.check_device(device)?;
        output.write(state.retain_primary(device).as_raw())
    }

    pub(crate) fn cuDevicePrimaryCtxRelease_v2(&self, device: CUdevice) -> Result {
        let device = self.device(device)?;
        let state = self.lock();
        let (_, retained) = state
            .primary(device)
            .ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?;
        // Retentions by green contexts are separate.
        if retained == state.green_contexts(device) {
            return Err(CUresult::CUDA_ERROR_NOT_PERMITTED);
        }
        self.release_primary(state, device)
    }

    pub(crate) fn cuDevicePrimaryCtxReset_v2(&self, device: CUdevice) -> Result {
        let device = self.device(device)?;
        let state = self.lock();
        match state.primary(device) {
            Some((id, _)) => self.leave_primary(state, id, 0),
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
        let device = self.device(device)?;
        let state = self.lock();
        flags.write(state.devices[device].primary_flags)?;
        active.write(i32::from(state.primary(device).is_some()))
    }

    pub(crate) fn cuDevicePrimaryCtxSetFlags_v2(&self, device: CUdevice, flags: u32) -> Result {
        let device = self.device(device)?;
        let flags = checked_flags(flags)?;
        // A primary context always maps host memory, without the flag.
        if flags & MAP_HOST != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let mut state = self.lock();
        state.devices[device].primary_flags = flags;
        if let Some((id, _)) = state.primary(device)
            && let Some(context) = state.contexts.get_mut(id)
        {
            context.flags = flags | MAP_HOST;
        }
        Ok(())
    }

    pub(crate) fn cuDevicePrimaryCtxRelease(&self, device: CUdevice) -> Result {
        self.cuDevicePrimaryCtxRelease_v2(device)
    }

    pub(crate) fn cuDevicePrimaryCtxReset(&self, device: CUdevice) -> Result {
        self.cuDevicePrimaryCtxReset_v2(device)
    }

    pub(crate) fn cuDevicePrimaryCtxSetFlags(&self, device: CUdevice, flags: u32) -> Result {
        let ordinal = self.device(device)?;
        checked_flags(flags)?;
        // The second version changes the flags of an active context instead.
        if self.lock().primary(ordinal).is_some() {
            return Err(CUresult::CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
        }
        self.cuDevicePrimaryCtxSetFlags_v2(device, flags)
    }

    /// Ends one retention of the primary context.
    pub(crate) fn release_primary(&self, state: MutexGuard<'_, State>, device: usize) -> Result {
        let (id, retained) = state
            .primary(device)
            .ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?;
        self.leave_primary(state, id, retained - 1)
    }

    /// Sets the retain count of the primary context; at 0 it ends, after its work.
    fn leave_primary<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        id: Id<Context>,
        retained: u32,
    ) -> Result {
        if retained == 0 {
            let pending = state.schedule.unobserved(|target| target.context == id);
            state = self.wait(state, &pending)?;
            self.end_objects(&mut state, id);
        }
        if let Some(context) = state.contexts.get_mut(id) {
            context.retained = retained;
        }
        Ok(())
    }
}
