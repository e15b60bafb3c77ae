//! A point in a stream that the test lets the work pass.

use std::env;
use std::ffi::c_void;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use curium_driver::{Stream, call};

/// Holds up a stream until it is opened, so that a test decides when the work behind it runs. It opens when it is dropped.
///
/// A driver may run the host functions of all streams on one thread: while one gate is closed, another may hold up more than
/// its own stream.
#[must_use = "a gate opens when it is dropped"]
pub struct Gate {
    state: Arc<State>,
}

/// What a test ends with that needs work to be held up, where that cannot be.
pub(crate) struct HeldUp;

#[derive(Default)]
struct State {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Puts a closed gate on `stream`: work put there later runs when the gate is open.
    ///
    /// # Panics
    ///
    /// If the driver refuses. Where each launch waits for its end, as under a sanitizer, the gate would never open: the test
    /// ends here.
    pub fn on(stream: &Stream) -> Self {
        if launches_wait() {
            resume_unwind(Box::new(HeldUp));
        }
        let state = Arc::new(State::default());
        let data = Arc::into_raw(Arc::clone(&state)).cast_mut().cast::<c_void>();
        // SAFETY: the stream is live, and `wait` may be called once with the share of the state that `data` stands for.
        unsafe { call!(stream.driver(), cuLaunchHostFunc(stream.as_raw(), Some(wait), data)) }
            .expect("a host function can be launched");
        Self { state }
    }

    /// Lets the work behind the gate run.
    pub fn open(self) {
        drop(self);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        *self.state.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.state.opened.notify_all();
    }
}

/// Returns `true` if whoever runs the tests says that a launch returns only when it is done (`CURIUM_TEST_LAUNCHES_WAIT=1`).
fn launches_wait() -> bool {
    env::var_os("CURIUM_TEST_LAUNCHES_WAIT").is_some_and(|value| value == "1")
}

/// Runs in stream order and returns when the gate is open.
///
/// # Safety
///
/// `data` came from `Arc::into_raw`, and this is the only call with it.
unsafe extern "C" fn wait(data: *mut c_void) {
    // SAFETY: the caller guarantees `data`.
    let state = unsafe { Arc::from_raw(data.cast_const().cast::<State>()) };
    let open = state.open.lock().unwrap_or_else(PoisonError::into_inner);
    drop(state.opened.wait_while(open, |open| !*open).unwrap_or_else(PoisonError::into_inner));
}
