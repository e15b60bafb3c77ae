//! Device notifications, which tests trigger here.

use std::ffi::c_void;
use std::thread;

use curium_sys::{
    CUasyncCallback, CUasyncCallbackEntry_st, CUasyncCallbackHandle, CUasyncNotificationInfo,
    CUasyncNotificationType, CUdevice, CUresult,
};

use crate::argument::Pointer;
use crate::driver::{Driver, Result, host_function};
use crate::handle::{Id, Kind, Object};

/// A callback for the notifications of a device.
pub(crate) struct Listener {
    device: usize,
    callback:
        unsafe extern "C" fn(*mut CUasyncNotificationInfo, *mut c_void, CUasyncCallbackHandle),
    data: *mut c_void,
}

// SAFETY: the caller that registers a callback permits the driver to call it with its argument on another thread: that is its contract.
unsafe impl Send for Listener {}

impl Object for Listener {
    type Raw = CUasyncCallbackEntry_st;
    const KIND: Kind = Kind::Listener;
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
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
            device: self.device(device)?,
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
        let device = self.device(device)?;
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

impl Driver {
    /// Notifies every listener of a device that the process holds too much memory, and returns after all have been called.
    pub(crate) fn notify_over_budget(&self, device: usize, bytes: u64) {
        let listening: Vec<_> = {
            let state = self.lock();
            let for_device = state
                .listeners
                .iter()
                .filter(|(_, listener)| listener.device == device);
            for_device
                .map(|(id, listener)| Call {
                    callback: listener.callback,
                    data: listener.data,
                    id,
                })
                .collect()
        };
        thread::scope(|scope| {
            scope.spawn(|| listening.into_iter().for_each(|call| call.run(bytes)));
        });
    }
}

/// A call that is due.
struct Call {
    callback:
        unsafe extern "C" fn(*mut CUasyncNotificationInfo, *mut c_void, CUasyncCallbackHandle),
    data: *mut c_void,
    id: Id<Listener>,
}

// SAFETY: the caller that registered the callback permits the driver to call it with its argument on another thread.
unsafe impl Send for Call {}

impl Call {
    fn run(self, bytes: u64) {
        let kind = CUasyncNotificationType::CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET;
        let mut info = CUasyncNotificationInfo {
            type_: kind,
            ..Default::default()
        };
        info.info.overBudget.bytesOverBudget = bytes;
        host_function::run(|| {
            // SAFETY: the caller that registered the callback guaranteed that it can be called with its argument and a notification.
            unsafe { (self.callback)(&raw mut info, self.data, self.id.as_raw()) }
        });
    }
}
