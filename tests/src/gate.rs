//! A gate in a stream: later work waits until the test opens it.

use std::env;
use std::ffi::c_void;
use std::panic::resume_unwind;
use std::sync::Arc;

use curium_driver::AsRawStream as _;
use curium_driver::{Stream, call};
use parking_lot::{Condvar, Mutex};

/// Blocks a stream until it is opened, so that a test decides when the later work runs. Dropping it
/// opens it.
///
/// A driver may run the host functions of all streams on one thread, so a closed gate may block
/// other streams too.
#[must_use = "a gate opens when it is dropped"]
pub struct Gate {
    state: Arc<State>,
}

/// The panic payload of a test that needs blocked work on a machine where launches wait.
pub(crate) struct HeldUp;

#[derive(Default)]
struct State {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Enqueues a closed gate on `stream`: work enqueued later runs once the gate is open.
    ///
    /// # Panics
    ///
    /// Panics if the driver call fails. If every launch waits for its completion, as under a
    /// sanitizer, the gate would never open: the test ends here.
    pub fn on(stream: &Stream) -> Self {
        if launches_wait() {
            resume_unwind(Box::new(HeldUp));
        }
        let state = Arc::new(State::default());
        let data = Arc::into_raw(Arc::clone(&state))
            .cast_mut()
            .cast::<c_void>();
        // SAFETY: the stream is live, and `wait` may be called once with the reference to the state
        // in `data`.
        unsafe {
            call!(
                stream.driver(),
                cuLaunchHostFunc(stream.as_raw(), Some(wait), data)
            )
        }
        .expect("cuLaunchHostFunc failed");
        Self { state }
    }

    /// Lets the work after the gate run.
    pub fn open(self) {
        drop(self);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        *self.state.open.lock() = true;
        self.state.opened.notify_all();
    }
}

/// Returns `true` if the environment declares that launches return only when they are complete
/// (`CURIUM_TEST_LAUNCHES_WAIT=1`).
fn launches_wait() -> bool {
    env::var_os("CURIUM_TEST_LAUNCHES_WAIT").is_some_and(|value| value == "1")
}

/// Runs in stream order and returns when the gate is open.
///
/// # Safety
///
/// `data` was returned by `Arc::into_raw`, and this is the only call with it.
unsafe extern "C" fn wait(data: *mut c_void) {
    // SAFETY: `data` is guaranteed by the caller.
    let state = unsafe { Arc::from_raw(data.cast_const().cast::<State>()) };
    let mut open = state.open.lock();
    state.opened.wait_while(&mut open, |open| !*open);
}
