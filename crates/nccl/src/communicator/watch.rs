//! The thread that aborts a communicator whose operations do not complete in time.
//!
//! The threads that use the communicator cannot: a call of the driver, such as the first launch of a kernel, may wait for an operation that
//! waits for a rank that is gone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::shared::{State, report_failed_end};
use crate::error::{ArgumentError, Result};

/// The longest time between two looks at the operations.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The thread that watches the operations of a communicator. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn start(state: &Arc<State>, timeout: Duration) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (state, ends) = (Arc::clone(state), Arc::clone(&is_over));
        let thread = thread::Builder::new().name("curium-nccl-watch".to_owned());
        let thread = thread.spawn(move || watch(&state, timeout, &ends)).map_err(|error| {
            let problem = format!("the timeout cannot be watched: no thread can be started ({error})");
            ArgumentError::refused("Communicator::with_options", problem)
        })?;
        Ok(Self { is_over, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does not panic.
            let _ = thread.join();
        }
    }
}

/// Looks at the operations from time to time, until the communicator has ended.
fn watch(state: &State, timeout: Duration, is_over: &AtomicBool) {
    let pause = (timeout / 8).min(MAX_PAUSE);
    while !is_over.load(Acquire) && !state.has_ended() {
        if let Some(late) = state.late(timeout) {
            return report_failed_end(state.expire(late));
        }
        thread::park_timeout(pause);
    }
}
