//! The driver, the device of each thread, and its last error.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ptr;
use std::sync::OnceLock;

use curium_sys::{Api, CU_STREAM_PER_THREAD, CUcontext, CUresult, CUstream};
use parking_lot::Mutex;

use crate::cu;

/// A code of the runtime. Most codes of the driver have the same numbers.
pub(crate) type Code = c_int;

pub(crate) type Result<T> = std::result::Result<T, Code>;

pub(crate) const INVALID_VALUE: Code = 1;
pub(crate) const INVALID_CONFIGURATION: Code = 9;
pub(crate) const INVALID_PITCH: Code = 12;
pub(crate) const INVALID_SYMBOL: Code = 13;
pub(crate) const INVALID_DIRECTION: Code = 21;
const INSUFFICIENT_DRIVER: Code = 35;
pub(crate) const INVALID_DEVICE_FUNCTION: Code = 98;
pub(crate) const INVALID_DEVICE: Code = 101;
pub(crate) const NOT_SUPPORTED: Code = 801;

thread_local! {
    static DEVICE: Cell<Option<c_int>> = const { Cell::new(None) };
    static LAST: Cell<Code> = const { Cell::new(0) };
}

/// The retained primary contexts, by device.
static CONTEXTS: Mutex<BTreeMap<c_int, usize>> = Mutex::new(BTreeMap::new());

/// The devices from which the first is the default one; all devices if the list is empty.
static VALID_DEVICES: Mutex<Vec<c_int>> = Mutex::new(Vec::new());

static API: OnceLock<Option<Api>> = OnceLock::new();

/// Uses these functions instead of the system's driver, if no function was called before.
#[cfg(test)]
pub(crate) fn install(api: Api) {
    API.get_or_init(|| initialized(api));
}

/// Returns the functions of the driver, which is loaded and initialized by the first call.
pub(crate) fn api() -> Result<&'static Api> {
    API.get_or_init(|| Api::load().ok().and_then(initialized))
        .as_ref()
        .ok_or(INSUFFICIENT_DRIVER)
}

fn initialized(api: Api) -> Option<Api> {
    let init = api.cuInit?;
    // SAFETY: 0 is the only valid argument.
    let code = unsafe { init(0) };
    (code == CUresult::CUDA_SUCCESS || code == CUresult::CUDA_ERROR_NO_DEVICE).then_some(api)
}

/// Converts the result of a driver call.
pub(crate) fn check(code: CUresult) -> Result<()> {
    if code == CUresult::CUDA_SUCCESS {
        Ok(())
    } else {
        Err(code.0.cast_signed())
    }
}

/// Records an error as the thread's last error, and returns the code. `cudaErrorNotReady` is not an
/// error.
pub(crate) fn record(result: Result<()>) -> Code {
    const NOT_READY: Code = 600;
    let code = result.err().unwrap_or(0);
    if code != 0 && code != NOT_READY {
        LAST.set(code);
    }
    code
}

/// Runs the body of a function of the runtime, and records its result.
pub(crate) fn entry(body: impl FnOnce() -> Result<()>) -> Code {
    record(body())
}

pub(crate) fn last_error() -> Code {
    LAST.get()
}

pub(crate) fn clear_error() {
    LAST.set(0);
}

/// Returns the device of the calling thread. Unless the thread has set one, it is the first valid
/// one.
pub(crate) fn device() -> c_int {
    DEVICE
        .get()
        .unwrap_or_else(|| VALID_DEVICES.lock().first().copied().unwrap_or(0))
}

/// Sets the devices that threads use unless they set one.
pub(crate) fn set_valid_devices(devices: Vec<c_int>) {
    *VALID_DEVICES.lock() = devices;
}

/// Returns a stream, or the stream of the calling thread in place of the default stream.
pub(crate) fn per_thread(stream: CUstream) -> CUstream {
    if stream.is_null() {
        CU_STREAM_PER_THREAD
    } else {
        stream
    }
}

/// Waits for the work of a stream, and returns and records the code.
pub(crate) fn synchronize(stream: CUstream) -> Code {
    // SAFETY: the callers pass the stream of the thread.
    entry(|| unsafe { cu!(cuStreamSynchronize(stream)) })
}

/// Makes the primary context of a device current.
pub(crate) fn set_device(device: c_int) -> Result<()> {
    let context = primary(device)?;
    // SAFETY: the caller of the runtime function guarantees the arguments.
    unsafe { cu!(cuCtxSetCurrent(context)) }?;
    DEVICE.set(Some(device));
    Ok(())
}

/// Makes the primary context of the thread's device current unless the program has set a context.
pub(crate) fn enter() -> Result<()> {
    let mut current: CUcontext = ptr::null_mut();
    // SAFETY: `current` is valid for writes.
    unsafe { cu!(cuCtxGetCurrent(&raw mut current)) }?;
    if current.is_null() {
        set_device(device())
    } else {
        Ok(())
    }
}

/// Discards the context of a device after a reset.
pub(crate) fn discard_context(device: c_int) {
    CONTEXTS.lock().remove(&device);
}

/// Returns the primary context of a device.
pub(crate) fn primary(device: c_int) -> Result<CUcontext> {
    let mut contexts = CONTEXTS.lock();
    if let Some(context) = contexts.get(&device) {
        return Ok(ptr::with_exposed_provenance_mut(*context));
    }
    let mut context: CUcontext = ptr::null_mut();
    // SAFETY: `context` is valid for writes, and the caller of the runtime function guarantees the
    // other arguments.
    unsafe { cu!(cuDevicePrimaryCtxRetain(&raw mut context, device)) }?;
    contexts.insert(device, context.expose_provenance());
    Ok(context)
}

/// An output parameter of a runtime function. By the contract of the function, it is null or valid
/// for writes.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes the value.
    pub(crate) fn write(self, value: T) -> Result<()> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: only callers of runtime functions create outputs. Their contract makes the
        // pointer valid for writes.
        unsafe { self.0.write(value) };
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn null() -> Self {
        Self(ptr::null_mut())
    }
}

#[cfg(test)]
impl<T> From<&mut T> for Out<T> {
    fn from(value: &mut T) -> Self {
        Self(value)
    }
}
