//! Teardown of handles. It never panics, and failures are reported in one place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(miri))]
use std::time::{Duration, Instant};

use curium_sys::CUresult;
use parking_lot::{Mutex, RwLock};

use crate::base::contain::contain;
use crate::base::leak::LeakedMemory;
use crate::base::{capture_guard, fork};
use crate::{CudaError, Driver, Error, Result, emit_event};

/// A callback for failures in `Drop`. See [`set_drop_observer`].
pub type DropObserver = Arc<dyn Fn(&Error) + Send + Sync>;

static OBSERVER: RwLock<Option<DropObserver>> = RwLock::new(None);
static EXITING: AtomicBool = AtomicBool::new(false);
/// Held by background threads of this crate while they call the driver.
static BACKGROUND: Mutex<()> = Mutex::new(());

/// The maximum time that process exit waits for a driver call of a background thread.
#[cfg(not(miri))]
const EXIT_PATIENCE: Duration = Duration::from_secs(1);

/// Registers a callback for failures in `Drop`, replacing the previous one. `None` removes it.
///
/// A failure in `Drop` cannot be returned to a caller. It is also recorded as a `tracing` event at
/// level `ERROR`. To handle a failure, call the `close` method of the handle instead of dropping
/// it.
#[inline]
pub fn set_drop_observer(observer: Option<DropObserver>) {
    let previous = std::mem::replace(&mut *OBSERVER.write(), observer);
    // Without the lock: the drop of a callback is user code, which may register another one or fail
    // to release a handle.
    drop(previous);
}

/// Runs `destroy` for a handle that is being dropped, and reports its error.
///
/// Does nothing once the process is exiting: the driver may already be unloaded, and process exit
/// frees everything. Does nothing in a forked child either: the handles belong to the parent.
/// `CUDA_ERROR_DEINITIALIZED` is not reported.
///
/// Within a capture closure, `destroy` may wait on the host, which is refused otherwise. Enqueuing
/// work that the graph would miss remains an error.
#[inline]
pub fn release(destroy: impl FnOnce() -> Result<()>) {
    if let Some(Err(error)) = dropping(destroy) {
        report(&error);
    }
}

/// Runs `destroy` like [`release`], for a handle of a library whose errors are not the driver's.
/// Others than those that the driver caused are reported as errors of `operation`.
pub fn release_handle<E: CudaError>(
    operation: &'static str,
    destroy: impl FnOnce() -> Result<(), E>,
) {
    let Some(Err(error)) = dropping(destroy) else {
        return;
    };
    match error.driver_error() {
        Some(error) => report(error),
        None => report(&Error::argument(operation, error.to_string())),
    }
}

/// Runs `destroy` like [`release`] and returns its result, or `None` if it was not run.
#[inline]
pub fn dropping<T>(destroy: impl FnOnce() -> T) -> Option<T> {
    if is_exiting() || fork::is_child() {
        return None;
    }
    let _dropping = capture_guard::permit_waits();
    Some(destroy())
}

/// Reports a failure in `Drop` to `tracing` and to the [observer](set_drop_observer).
#[cold]
pub fn report(error: &Error) {
    if error.code() == Some(CUresult::CUDA_ERROR_DEINITIALIZED) {
        return;
    }
    emit_event!(ERROR, %error, "a handle could not be released");
    let observer = OBSERVER.read().clone();
    if let Some(observer) = observer {
        // The last reference to an observer that was replaced in the meantime is dropped here.
        contain(move || observer(error));
    }
}

/// Counts leaked memory of `driver` and reports `error`, the reason for the leak.
///
/// The caller must not free the memory. See [`Driver::leaked_memory`].
#[cold]
pub fn leak(driver: &Driver, leaked: LeakedMemory, error: &Error) {
    driver.leaks().add(leaked);
    report(error);
}

/// Returns `true` once the process has started to exit. The driver must not be called after that.
#[must_use]
#[inline]
pub fn is_exiting() -> bool {
    EXITING.load(Ordering::Acquire)
}

/// Runs `operation` on a background thread of this crate unless the process is exiting. Process
/// exit waits until it returns.
#[inline]
pub(crate) fn unless_exiting<T>(operation: impl FnOnce() -> T) -> Option<T> {
    let _guard = BACKGROUND.lock();
    (!is_exiting()).then(operation)
}

/// Registers an exit handler that runs before the driver's own.
///
/// Handlers run in the reverse order of their registration, and an initialized driver has
/// registered its handler.
#[inline]
pub(crate) fn watch_for_exit() {
    #[cfg(not(miri))]
    {
        static REGISTER: std::sync::Once = std::sync::Once::new();
        REGISTER.call_once(|| {
            atexit(on_exit);
        });
    }
}

#[cfg(not(miri))]
extern "C" fn on_exit() {
    EXITING.store(true, Ordering::Release);
    if fork::is_child() {
        // The thread that held the lock at the time of the fork does not exist in this process.
        return;
    }
    // The thread that holds the lock is calling the driver, which must stay loaded until the call
    // returns.
    let deadline = Instant::now() + EXIT_PATIENCE;
    while BACKGROUND.try_lock().is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

// SAFETY: `atexit` of the C library has this signature; the handler only stores a flag.
#[cfg(not(miri))]
unsafe extern "C" {
    safe fn atexit(handler: extern "C" fn()) -> std::ffi::c_int;
}
