//! Runs user code in the middle of an operation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use curium_driver::{Call, CallObserver, Function, Result};

/// A call observer that runs `action` once, on the thread that created the observer, when a call of `function` begins.
pub struct During<F> {
    function: Function,
    thread: ThreadId,
    has_run: AtomicBool,
    action: F,
}

impl<F: Fn() + Send + Sync> During<F> {
    /// Returns an observer that runs `action` during the first call of `function`.
    pub fn call_of(function: Function, action: F) -> Self {
        Self { function, thread: thread::current().id(), has_run: AtomicBool::new(false), action }
    }
}

impl<F: Fn() + Send + Sync> CallObserver for During<F> {
    fn before(&self, function: Function) {
        let is_it = function == self.function && thread::current().id() == self.thread;
        if is_it && !self.has_run.swap(true, Ordering::Relaxed) {
            (self.action)();
        }
    }

    fn after(&self, _call: &Call<'_>) {}
}

/// Panics unless the operation failed because it would have waited for its own thread.
pub fn assert_reentrant<T>(result: Result<T>) {
    let Err(error) = result else { panic!("it would wait for its own thread") };
    assert!(error.function().is_none() && error.to_string().contains("re-entrant"), "{error}");
}
