//! Asynchronous notifications from a device.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use curium_sys::{
    CUasyncCallbackEntry_st, CUasyncCallbackHandle, CUasyncNotificationInfo,
    CUasyncNotificationType,
};

use crate::base::callback::{CallbackNumber, Callbacks};
use crate::base::contain::contain_callback;
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::call;
use crate::{Device, Result, Returned};

/// A notification from a device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Notification {
    /// The process uses more device memory than its budget.
    OverBudget {
        /// The number of bytes over budget.
        bytes: u64,
    },
    /// A kind defined by a newer driver.
    Unknown(u32),
}

/// A registered notification callback. Dropping it unregisters the callback.
#[must_use = "the closure is called for as long as this exists"]
pub struct NotificationListener {
    device: Device,
    raw: Handle<CUasyncCallbackEntry_st>,
    number: CallbackNumber,
}

/// The closures of all registered callbacks.
static CALLBACKS: Callbacks<dyn Fn(Notification) + Send + Sync> = Callbacks::new();

impl Device {
    /// Registers a callback for notifications from this device. It runs on a driver thread until
    /// the listener is dropped.
    ///
    /// The closure should return soon. It must not create or drop a listener, which the driver
    /// would refuse. Its panics are caught.
    ///
    /// Requires CUDA 12.4. CUDA: `cuDeviceRegisterAsyncNotification`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceRegisterAsyncNotification")]
    pub fn on_notification(
        &self,
        callback: impl Fn(Notification) + Send + Sync + 'static,
    ) -> Result<NotificationListener> {
        let number = CALLBACKS.add(Arc::new(callback));
        let data = number.as_data();
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writes; `notified` accepts any number and may be called at any
        // time.
        unsafe {
            call!(self.driver(), cuDeviceRegisterAsyncNotification(self.as_raw(), Some(notified), data, &raw mut raw) creates raw)
        }
        .inspect_err(|_| CALLBACKS.forget(number))?;
        Ok(NotificationListener {
            device: self.clone(),
            raw: Handle::new(raw),
            number,
        })
    }
}

impl NotificationListener {
    /// Unregisters the callback and returns any error, instead of only reporting it as [`Drop`]
    /// does. In either case the closure is not called any more; a call in progress continues.
    ///
    /// CUDA: `cuDeviceUnregisterAsyncNotification`.
    ///
    /// # Errors
    ///
    /// Returns the listener, whose closure is no longer called, if the driver call fails.
    #[doc(alias = "cuDeviceUnregisterAsyncNotification")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.unregister()
            .map_err(|error| Returned::new(self, error))
    }

    fn unregister(&mut self) -> Result<()> {
        CALLBACKS.forget(self.number);
        let device = self.device.as_raw();
        let raw = self.raw.raw();
        // SAFETY: `raw` refers to a registered callback of this device, and is not used again once
        // it is unregistered.
        unsafe {
            call!(
                self.device.driver(),
                cuDeviceUnregisterAsyncNotification(device, raw)
            )
        }?;
        self.raw.clear();
        Ok(())
    }
}

impl Notification {
    /// Converts the driver's description.
    ///
    /// # Safety
    ///
    /// `info` is the argument that the driver passed to a callback.
    unsafe fn from_raw(info: &CUasyncNotificationInfo) -> Self {
        match info.type_ {
            CUasyncNotificationType::CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET => {
                // SAFETY: the type selects the union field that the driver has initialized.
                let over_budget = unsafe { info.info.overBudget };
                Self::OverBudget {
                    bytes: over_budget.bytesOverBudget,
                }
            }
            CUasyncNotificationType(other) => Self::Unknown(other),
        }
    }
}

impl fmt::Debug for NotificationListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "NotificationListener({:?} of {:?})",
            self.raw, self.device
        )
    }
}

impl Drop for NotificationListener {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            CALLBACKS.forget(self.number);
            release(|| self.unregister());
        }
    }
}

/// The callback passed to the driver.
///
/// # Safety
///
/// `info` points to a notification for the duration of the call. `data` may be any number.
unsafe extern "C" fn notified(
    info: *mut CUasyncNotificationInfo,
    data: *mut c_void,
    _: CUasyncCallbackHandle,
) {
    contain_callback("the callback of a device's notification", (), || {
        // SAFETY: the driver passes a pointer that is valid for the duration of the call.
        let Some(info) = (unsafe { info.as_ref() }) else {
            return;
        };
        // SAFETY: `info` came from the driver.
        let notification = unsafe { Notification::from_raw(info) };
        CALLBACKS.call(data, |callback| callback(notification));
    });
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn over_budget(bytes: u64) -> CUasyncNotificationInfo {
        let kind = CUasyncNotificationType::CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET;
        let mut info = CUasyncNotificationInfo {
            type_: kind,
            ..Default::default()
        };
        info.info.overBudget.bytesOverBudget = bytes;
        info
    }

    fn notify(number: CallbackNumber, mut info: CUasyncNotificationInfo) {
        // SAFETY: `info` is a notification that lives during the call.
        unsafe { notified(&raw mut info, number.as_data(), ptr::null_mut()) };
    }

    #[test]
    fn notification_arrives_until_it_is_forgotten() {
        let (sender, receiver) = mpsc::channel();
        let number = CALLBACKS.add(Arc::new(move |notification| {
            sender.send(notification).expect("a receiver");
        }));
        notify(number, over_budget(4096));
        let mut unknown = over_budget(0);
        unknown.type_ = CUasyncNotificationType(77);
        notify(number, unknown);
        CALLBACKS.forget(number);
        notify(number, over_budget(1));
        let received: Vec<_> = receiver.iter().collect();
        assert_eq!(
            received,
            [
                Notification::OverBudget { bytes: 4096 },
                Notification::Unknown(77)
            ]
        );
    }

    #[test]
    fn closure_panic_ends_in_the_callback() {
        let number = CALLBACKS.add(Arc::new(|_| panic!("the closure's own")));
        notify(number, over_budget(1));
        CALLBACKS.forget(number);
    }
}
