//! Callbacks for messages of the driver's log.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;

use curium_sys::{CUlogLevel, CUlogsCallbackEntry_st};

use crate::base::callback::{CallbackNumber, Callbacks};
use crate::base::contain::contain_callback;
use crate::base::handle::Handle;
use crate::base::release::release;
use crate::call;
use crate::{Driver, Result, Returned};

/// The severity of a log message.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LogLevel {
    /// A call failed.
    Error,
    /// A call succeeded with a warning.
    Warning,
    /// A level defined by a newer driver.
    Unknown(u32),
}

/// A registered log callback. Dropping it unregisters the callback.
#[must_use = "the closure is called for as long as this exists"]
pub struct LogListener {
    driver: Driver,
    raw: Handle<CUlogsCallbackEntry_st>,
    number: CallbackNumber,
}

type Callback = dyn Fn(LogLevel, &str) + Send + Sync;

/// The closures of all registered callbacks.
static CALLBACKS: Callbacks<Callback> = Callbacks::new();

impl Driver {
    /// Registers a callback for every message that the driver logs. It runs on the thread of the
    /// failing call, until the listener is dropped.
    ///
    /// The closure should return soon and must not use this crate, since it runs inside a driver
    /// call. Its panics are caught.
    ///
    /// Requires CUDA 12.9. CUDA: `cuLogsRegisterCallback`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuLogsRegisterCallback")]
    pub fn on_log(
        &self,
        callback: impl Fn(LogLevel, &str) + Send + Sync + 'static,
    ) -> Result<LogListener> {
        let number = CALLBACKS.add(Arc::new(callback));
        let mut raw = ptr::null_mut();
        let data = number.as_data();
        // SAFETY: `raw` is valid for writes; `logged` accepts any number and may be called at any
        // time.
        unsafe {
            call!(self, cuLogsRegisterCallback(Some(logged), data, &raw mut raw) creates raw)
        }
        .inspect_err(|_| CALLBACKS.forget(number))?;
        Ok(LogListener {
            driver: self.clone(),
            raw: Handle::new(raw),
            number,
        })
    }
}

impl LogListener {
    /// Unregisters the callback and returns any error, instead of only reporting it as [`Drop`]
    /// does. In either case the closure is not called any more; a call in progress continues.
    ///
    /// CUDA: `cuLogsUnregisterCallback`.
    ///
    /// # Errors
    ///
    /// Returns the listener, whose closure is no longer called, if the driver call fails.
    #[doc(alias = "cuLogsUnregisterCallback")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.unregister()
            .map_err(|error| Returned::new(self, error))
    }

    fn unregister(&mut self) -> Result<()> {
        CALLBACKS.forget(self.number);
        // SAFETY: the handle refers to a registered callback of this driver, and is not used again
        // once it is unregistered.
        unsafe { call!(&self.driver, cuLogsUnregisterCallback(self.raw.raw())) }?;
        self.raw.clear();
        Ok(())
    }
}

impl LogLevel {
    fn from_raw(level: CUlogLevel) -> Self {
        match level {
            CUlogLevel::CU_LOG_LEVEL_ERROR => Self::Error,
            CUlogLevel::CU_LOG_LEVEL_WARNING => Self::Warning,
            CUlogLevel(other) => Self::Unknown(other),
        }
    }
}

impl fmt::Debug for LogListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LogListener({:?})", self.raw)
    }
}

impl Drop for LogListener {
    fn drop(&mut self) {
        if !self.raw.is_cleared() {
            release(|| self.unregister());
        }
    }
}

/// The callback passed to the driver.
///
/// # Safety
///
/// `message` points to `length` bytes for the duration of the call. `data` may be any number.
unsafe extern "C" fn logged(
    data: *mut c_void,
    level: CUlogLevel,
    message: *mut c_char,
    length: usize,
) {
    contain_callback("the callback of the driver's log", (), || {
        if message.is_null() {
            return;
        }
        // SAFETY: the driver passes text of this length that is valid for the duration of the call.
        let bytes = unsafe { std::slice::from_raw_parts(message.cast::<u8>(), length) };
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\0', '\n']);
        CALLBACKS.call(data, |callback| callback(LogLevel::from_raw(level), text));
    });
}
