//! What happens when a handle is dropped: it never panics, and a failure is reported in one place.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(miri))]
use std::time::{Duration, Instant};

use curium_sys::CUresult;
use parking_lot::{Mutex, RwLock};

use crate::base::{capture_guard, fork};
use crate::{Error, Result};

/// Is told of every failure in a drop. See [`set_drop_observer`].
pub type DropObserver = Arc<dyn Fn(&Error) + Send + Sync>;

static OBSERVER: RwLock<Option<DropObserver>> = RwLock::new(None);
static EXITING: AtomicBool = AtomicBool::new(false);
/// Held by threads of this crate while they call the driver, and by nobody once the process exits.
static BACKGROUND: Mutex<()> = Mutex::new(());

/// How long the exit of the process waits for the call of a background thread to return.
#[cfg(not(miri))]
const EXIT_PATIENCE: Duration = Duration::from_secs(1);

/// Has `observer` told of every failure in a drop, in place of the observer before it; `None` ends that.
///
/// Such a failure has no caller to return to. It is an event of `tracing` at the level `ERROR` in any case. Where a failure
/// matters, `close` ends a handle with a result.
#[inline]
pub fn set_drop_observer(observer: Option<DropObserver>) {
    *OBSERVER.write() = observer;
}

/// Runs `destroy` for a handle that is dropped.
///
/// Once the process is exiting the driver may be gone already, and calling it may crash: then nothing is done, since the end of
/// the process frees everything. The same holds in the child of a fork, whose handles are the parent's. A driver that says of itself
/// that it is gone is silent for the same reason.
///
/// What a drop enqueues and waits for is no work of a graph that this thread captures.
#[doc(hidden)]
#[inline]
pub fn release(destroy: impl FnOnce() -> Result<()>) {
    if let Some(Err(error)) = dropping(destroy) {
        report(&error);
    }
}

/// As [`release`], for a caller that reports errors itself; `None` where nothing must be done.
#[doc(hidden)]
#[inline]
pub fn dropping<T>(destroy: impl FnOnce() -> T) -> Option<T> {
    if is_exiting() || fork::is_child() {
        return None;
    }
    let _dropping = capture_guard::suspend();
    Some(destroy())
}

/// Reports a failure that has no caller to return to.
#[doc(hidden)]
#[cold]
#[inline]
pub fn report(error: &Error) {
    if error.code() == Some(CUresult::CUDA_ERROR_DEINITIALIZED) {
        return;
    }
    tracing::error!(%error, "a handle could not be released");
    let observer = OBSERVER.read().clone();
    if let Some(observer) = observer {
        // A drop must not panic; the observer's panic has been printed by the panic hook.
        contain(|| observer(error));
    }
}

/// Runs the user's code such that a panic ends here, and says whether there was none.
#[doc(hidden)]
#[inline]
pub fn contain(operation: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(operation)) {
        Ok(()) => true,
        Err(payload) => {
            discard(payload);
            false
        }
    }
}

/// Drops what a panic of the user's code carried, which is the user's as well: dropping it may panic in turn.
#[inline]
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
}

/// Whether the process has begun to exit, so that the driver must not be called any more.
#[doc(hidden)]
#[must_use]
#[inline]
pub fn is_exiting() -> bool {
    EXITING.load(Ordering::Acquire)
}

/// Runs `operation`, which calls the driver from a thread of this crate, unless the process exits; its exit waits for the end.
#[inline]
pub(crate) fn unless_exiting<T>(operation: impl FnOnce() -> T) -> Option<T> {
    let _guard = BACKGROUND.lock();
    (!is_exiting()).then(operation)
}

/// Learns of the process's exit before the driver ends itself: handlers run in the opposite order of their registration, and
/// the driver has registered its own by now.
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
        // Whoever held the lock when the process was forked is not in this one.
        return;
    }
    // Whoever holds the lock is in the driver, which must not end under its feet.
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
