//! What a device tells a process without being asked.
//!
//! The driver calls back with a number and not with an address. Nothing says that no call is under way when a callback has been
//! unregistered, so the closure lives in a table: a call takes its share of the closure there, and finds none when it comes too
//! late.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use curium_sys::{CUasyncCallbackEntry_st, CUasyncCallbackHandle, CUasyncNotificationInfo, CUasyncNotificationType};

use crate::call;
use crate::handle::Handle;
use crate::lock::Mutex;
use crate::release::{is_exiting, release};
use crate::{Device, Error, Result};

/// Something that a device tells a process.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Notification {
    /// The process holds more of the device's memory than the system wants it to.
    OverBudget {
        /// How many bytes more.
        bytes: u64,
    },
    /// A kind of a newer driver.
    Unknown(u32),
}

/// A closure that is called with what a device tells. Dropping it ends that.
#[must_use = "the closure is called for as long as this exists"]
pub struct NotificationListener {
    device: Device,
    raw: Handle<CUasyncCallbackEntry_st>,
    number: usize,
}

type Callback = dyn Fn(Notification) + Send + Sync;

/// The closures of the listeners that exist, by their numbers.
static CALLBACKS: Mutex<BTreeMap<usize, Arc<Callback>>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicUsize = AtomicUsize::new(1);

impl Device {
    /// Has `callback` called with what this device tells, on a thread of the driver, for as long as the listener exists.
    ///
    /// The closure should return soon, and it must not make or drop a listener: the driver refuses that then. If it panics, that
    /// is the end of the call and nothing else.
    ///
    /// Needs CUDA 12.4. CUDA: `cuDeviceRegisterAsyncNotification`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuDeviceRegisterAsyncNotification")]
    pub fn on_notification(
        &self,
        callback: impl Fn(Notification) + Send + Sync + 'static,
    ) -> Result<NotificationListener> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        CALLBACKS.lock().insert(number, Arc::new(callback));
        let data = ptr::without_provenance_mut(number);
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a valid place for the answer; `notified` takes any number and may be called at any time.
        unsafe {
            call!(self.driver(), cuDeviceRegisterAsyncNotification(self.as_raw(), Some(notified), data, &raw mut raw))
        }
        .inspect_err(|_| forget(number))?;
        Ok(NotificationListener { device: self.clone(), raw: Handle::new(raw), number })
    }
}

impl NotificationListener {
    /// Ends the listener, which [`Drop`] does as well, and says whether the driver agreed. The closure is not called any more in
    /// either case; a call that is under way goes on.
    ///
    /// CUDA: `cuDeviceUnregisterAsyncNotification`.
    ///
    /// # Errors
    ///
    /// Gives the listener, which stays silent, back if the driver refuses.
    #[doc(alias = "cuDeviceUnregisterAsyncNotification")]
    pub fn close(mut self) -> Result<(), (Self, Error)> {
        self.unregister().map_err(|error| (self, error))
    }

    fn unregister(&mut self) -> Result<()> {
        forget(self.number);
        let (device, raw) = (self.device.as_raw(), self.raw.raw());
        // SAFETY: `raw` stands for a callback of this device, and it is forgotten once it is unregistered.
        unsafe { call!(self.device.driver(), cuDeviceUnregisterAsyncNotification(device, raw)) }?;
        self.raw.clear();
        Ok(())
    }
}

impl Notification {
    /// # Safety
    ///
    /// `info` is what the driver passes to a callback.
    unsafe fn from_raw(info: &CUasyncNotificationInfo) -> Self {
        match info.type_ {
            CUasyncNotificationType::CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET => {
                // SAFETY: the type says which field of the union the driver has filled in.
                let over_budget = unsafe { info.info.overBudget };
                Self::OverBudget { bytes: over_budget.bytesOverBudget }
            }
            CUasyncNotificationType(other) => Self::Unknown(other),
        }
    }
}

impl fmt::Debug for NotificationListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NotificationListener({:?} of {:?})", self.raw, self.device)
    }
}

impl Drop for NotificationListener {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            forget(self.number);
            release(|| self.unregister());
        }
    }
}

/// Takes a closure out of the table. It is dropped where no lock is held, since it may own anything.
fn forget(number: usize) {
    let callback = CALLBACKS.lock().remove(&number);
    drop(callback);
}

/// What the driver calls.
///
/// # Safety
///
/// `info` points to a notification for the duration of the call. `data` may be any number.
unsafe extern "C" fn notified(info: *mut CUasyncNotificationInfo, data: *mut c_void, _: CUasyncCallbackHandle) {
    if is_exiting() {
        return;
    }
    // SAFETY: the driver passes a pointer that is valid for the duration of the call.
    let Some(info) = (unsafe { info.as_ref() }) else { return };
    let callback = CALLBACKS.lock().get(&data.addr()).cloned();
    let Some(callback) = callback else { return };
    // SAFETY: `info` came from the driver.
    let notification = unsafe { Notification::from_raw(info) };
    // No panic may reach C; the panic hook has printed it.
    let outcome = catch_unwind(AssertUnwindSafe(move || callback(notification)));
    if outcome.is_err() {
        tracing::error!(?notification, "the callback of a device's notification panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn over_budget(bytes: u64) -> CUasyncNotificationInfo {
        let kind = CUasyncNotificationType::CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET;
        let mut info = CUasyncNotificationInfo { type_: kind, ..Default::default() };
        info.info.overBudget.bytesOverBudget = bytes;
        info
    }

    fn notify(number: usize, mut info: CUasyncNotificationInfo) {
        // SAFETY: `info` is a notification that lives during the call.
        unsafe { notified(&raw mut info, ptr::without_provenance_mut(number), ptr::null_mut()) };
    }

    #[test]
    fn notification_reaches_its_closure_until_it_is_forgotten() {
        let (sender, receiver) = mpsc::channel();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        CALLBACKS.lock().insert(number, Arc::new(move |notification| sender.send(notification).expect("a receiver")));
        notify(number, over_budget(4096));
        let mut unknown = over_budget(0);
        unknown.type_ = CUasyncNotificationType(77);
        notify(number, unknown);
        forget(number);
        notify(number, over_budget(1));
        let received: Vec<_> = receiver.iter().collect();
        assert_eq!(received, [Notification::OverBudget { bytes: 4096 }, Notification::Unknown(77)]);
    }

    #[test]
    fn panic_of_a_closure_ends_in_the_callback() {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        CALLBACKS.lock().insert(number, Arc::new(|_| panic!("the closure's own")));
        notify(number, over_budget(1));
        forget(number);
    }
}
