//! Callbacks for core dumps.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;

use curium_driver::extend::{CallbackNumber, Callbacks, Handle, contain_callback, release};
use curium_driver::sys::{CUcoredumpCallbackEntry_st, CUdevice};
use curium_driver::{Driver, Result, Returned, call};

/// The event passed to a core dump callback.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct CoreDumpNotice {
    /// The identifier of the process that writes the core dump.
    pub process: i32,
    /// The device on which the exception occurred.
    pub device: CUdevice,
}

/// A registered core dump callback. Dropping it deregisters the callback.
#[must_use = "the closure is called for as long as this exists"]
pub struct CoreDumpListener {
    driver: Driver,
    raw: Handle<CUcoredumpCallbackEntry_st>,
    number: CallbackNumber,
    stage: Stage,
}

/// The stage of a core dump at which the callback is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Start,
    Completion,
}

/// The closures of all registered callbacks.
static CALLBACKS: Callbacks<dyn Fn(CoreDumpNotice) + Send + Sync> = Callbacks::new();

impl CoreDumpListener {
    /// Registers a callback for the start of a core dump, before data is collected. The dump waits
    /// for the callback, which should return soon and must not use this crate.
    ///
    /// Requires CUDA 13.2. CUDA: `cuCoredumpRegisterStartCallback`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCoredumpRegisterStartCallback")]
    pub fn on_start(
        driver: &Driver,
        callback: impl Fn(CoreDumpNotice) + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::register(driver, Stage::Start, Arc::new(callback))
    }

    /// Registers a callback for the completion of a core dump, with the same restrictions as for
    /// [`CoreDumpListener::on_start`].
    ///
    /// Requires CUDA 13.2. CUDA: `cuCoredumpRegisterCompleteCallback`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuCoredumpRegisterCompleteCallback")]
    pub fn on_completion(
        driver: &Driver,
        callback: impl Fn(CoreDumpNotice) + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::register(driver, Stage::Completion, Arc::new(callback))
    }

    /// Deregisters the callback and returns any error, instead of only reporting it as [`Drop`]
    /// does. In either case the closure is not called any more; a call in progress continues.
    ///
    /// CUDA: `cuCoredumpDeregisterStartCallback`, `cuCoredumpDeregisterCompleteCallback`.
    ///
    /// # Errors
    ///
    /// Returns the listener, whose closure is no longer called, if the driver call fails.
    #[doc(alias = "cuCoredumpDeregisterStartCallback")]
    #[doc(alias = "cuCoredumpDeregisterCompleteCallback")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.deregister()
            .map_err(|error| Returned::new(self, error))
    }

    fn register(
        driver: &Driver,
        stage: Stage,
        callback: Arc<dyn Fn(CoreDumpNotice) + Send + Sync>,
    ) -> Result<Self> {
        let number = CALLBACKS.add(callback);
        let mut raw = ptr::null_mut();
        let data = number.as_data();
        let result = match stage {
            // SAFETY: `raw` is valid for writes; `dumped` accepts any number and may be called at
            // any time.
            Stage::Start => unsafe {
                call!(driver, cuCoredumpRegisterStartCallback(Some(dumped), data, &raw mut raw) creates raw)
            },
            // SAFETY: `raw` is valid for writes; `dumped` accepts any number and may be called at
            // any time.
            Stage::Completion => unsafe {
                call!(driver, cuCoredumpRegisterCompleteCallback(Some(dumped), data, &raw mut raw) creates raw)
            },
        };
        result.inspect_err(|_| CALLBACKS.forget(number))?;
        Ok(Self {
            driver: driver.clone(),
            raw: Handle::new(raw),
            number,
            stage,
        })
    }

    fn deregister(&mut self) -> Result<()> {
        CALLBACKS.forget(self.number);
        let raw = self.raw.raw();
        match self.stage {
            // SAFETY: `raw` refers to a registered callback of this kind, and is not used again
            // once it is deregistered.
            Stage::Start => unsafe { call!(&self.driver, cuCoredumpDeregisterStartCallback(raw)) },
            // SAFETY: `raw` refers to a registered callback of this kind, and is not used again
            // once it is deregistered.
            Stage::Completion => unsafe {
                call!(&self.driver, cuCoredumpDeregisterCompleteCallback(raw))
            },
        }?;
        self.raw.clear();
        Ok(())
    }
}

impl fmt::Debug for CoreDumpListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "CoreDumpListener({:?} for {:?})",
            self.raw, self.stage
        )
    }
}

impl Drop for CoreDumpListener {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.deregister());
        }
    }
}

/// The callback passed to the driver. `data` is a number and is never dereferenced.
unsafe extern "C" fn dumped(data: *mut c_void, process: c_int, device: CUdevice) {
    contain_callback("the callback of a core dump", (), || {
        let notice = CoreDumpNotice { process, device };
        CALLBACKS.call(data, |callback| callback(notice));
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use curium_driver::sys::{CUcoredumpCallbackHandle, CUcoredumpStatusCallback, CUresult};

    use super::*;
    use crate::stub_api;
    use parking_lot::Mutex;

    /// The callbacks registered with the stub driver: handle and argument.
    static REGISTERED: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
    static NEXT: AtomicUsize = AtomicUsize::new(0x100);

    fn driver() -> Driver {
        unsafe extern "C" fn register(
            callback: CUcoredumpStatusCallback,
            data: *mut c_void,
            output: *mut CUcoredumpCallbackHandle,
        ) -> CUresult {
            assert!(callback.is_some(), "there is a callback to register");
            let handle = NEXT.fetch_add(0x10, Ordering::Relaxed);
            REGISTERED.lock().push((handle, data.addr()));
            // SAFETY: the wrapper under test passes a pointer that is valid for writes.
            unsafe { output.write(ptr::without_provenance_mut(handle)) };
            CUresult::CUDA_SUCCESS
        }
        unsafe extern "C" fn deregister(handle: CUcoredumpCallbackHandle) -> CUresult {
            let mut registered = REGISTERED.lock();
            let before = registered.len();
            registered.retain(|(known, _)| *known != handle.addr());
            if registered.len() < before {
                CUresult::CUDA_SUCCESS
            } else {
                CUresult::CUDA_ERROR_INVALID_VALUE
            }
        }
        let mut api = stub_api::api();
        api.cuCoredumpRegisterStartCallback = Some(register);
        api.cuCoredumpDeregisterStartCallback = Some(deregister);
        stub_api::driver(api)
    }

    #[test]
    fn callback_runs_until_the_listener_is_dropped() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&heard);
        let driver = driver();
        let listener = CoreDumpListener::on_start(&driver, move |notice| ear.lock().push(notice));
        let listener = listener.expect("the driver registers it");
        let (_, data) = REGISTERED.lock()[0];
        let data = ptr::without_provenance_mut(data);
        // SAFETY: the callback takes any number.
        unsafe { dumped(data, 12, 1) };
        drop(listener);
        // SAFETY: the callback takes any number.
        unsafe { dumped(data, 13, 1) };
        assert_eq!(
            *heard.lock(),
            [CoreDumpNotice {
                process: 12,
                device: 1
            }]
        );
        assert!(REGISTERED.lock().is_empty(), "the callback was registered");
        assert_eq!(Arc::strong_count(&heard), 1, "the closure is dropped");
    }

    #[test]
    fn listener_on_an_old_driver_is_an_error() {
        let token = Arc::new(());
        let held = Arc::clone(&token);
        let error = CoreDumpListener::on_completion(&driver(), move |_| drop(Arc::clone(&held)));
        let error = error.expect_err("the function is missing").to_string();
        assert!(
            error.contains("cuCoredumpRegisterCompleteCallback needs a driver for CUDA 13.2"),
            "{error}"
        );
        assert_eq!(Arc::strong_count(&token), 1, "the closure is dropped");
    }
}
