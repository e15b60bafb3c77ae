//! The driver's part in device notifications.

use std::ffi::c_void;
use std::thread;

use curium_sys::{CUasyncCallbackHandle, CUasyncNotificationInfo, CUasyncNotificationType};

use crate::driver::Driver;
use crate::handle::Id;
use crate::host_function;
use crate::object::notification::Listener;

impl Driver {
    /// Notifies every listener of a device that the process holds too much memory, and returns
    /// after all have been called.
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
    pub(crate) callback:
        unsafe extern "C" fn(*mut CUasyncNotificationInfo, *mut c_void, CUasyncCallbackHandle),
    pub(crate) data: *mut c_void,
    pub(crate) id: Id<Listener>,
}

// SAFETY: the caller that registered the callback permits the driver to call it with its argument
// on another thread.
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
            // SAFETY: the caller that registered the callback guaranteed that it can be called with
            // its argument and a notification.
            unsafe { (self.callback)(&raw mut info, self.data, self.id.as_raw()) }
        });
    }
}
