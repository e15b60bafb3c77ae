//! The C functions for device notifications.

use std::ffi::c_void;

use curium_sys::{
    CUasyncCallback, CUasyncCallbackEntry_st, CUasyncCallbackHandle, CUdevice, CUresult,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::handle::Id;
use crate::object::notification::Listener;
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuDeviceRegisterAsyncNotification(
        &self,
        device: CUdevice,
        callback: CUasyncCallback,
        data: Pointer<c_void>,
        handle: Pointer<CUasyncCallbackHandle>,
    ) -> Result {
        let output = handle.required()?;
        let callback = callback.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let listener = Listener {
            device: self.devices().device(device)?,
            callback,
            data: data.as_ptr(),
        };
        output.write(self.lock().listeners.insert(listener).as_raw())
    }

    pub(crate) fn cuDeviceUnregisterAsyncNotification(
        &self,
        device: CUdevice,
        handle: Pointer<CUasyncCallbackEntry_st>,
    ) -> Result {
        let id = Id::from(handle.required()?);
        let device = self.devices().device(device)?;
        let mut state = self.lock();
        if state
            .listeners
            .get(id)
            .is_none_or(|listener| listener.device != device)
        {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        state.listeners.remove(id);
        Ok(())
    }
}
