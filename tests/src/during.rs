//! Runs user code in the middle of an operation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use curium_driver::{Call, CallObserver, Function, Result};

/// A call observer that runs `action` once, on the thread that created the observer, when a call of `function` begins or
/// when it ends.
pub struct During<F> {
    function: Function,
    is_end: bool,
    thread: ThreadId,
    has_run: AtomicBool,
    action: F,
}

impl<F: Fn() + Send + Sync> During<F> {
    /// Returns an observer that runs `action` before the first call of `function`.
    pub fn call_of(function: Function, action: F) -> Self {
        Self {
            function,
            is_end: false,
            thread: thread::current().id(),
            has_run: AtomicBool::new(false),
            action,
        }
    }

    /// Returns an observer that runs `action` after the first call of `function`.
    pub fn end_of(function: Function, action: F) -> Self {
        Self {
            is_end: true,
            ..Self::call_of(function, action)
        }
    }

    fn run(&self, function: Function, is_end: bool) {
        let is_it =
            (function, is_end, thread::current().id()) == (self.function, self.is_end, self.thread);
        if is_it && !self.has_run.swap(true, Ordering::Relaxed) {
            (self.action)();
        }
    }
}

impl<F: Fn() + Send + Sync> CallObserver for During<F> {
    fn before(&self, function: Function) {
        self.run(function, false);
    }

    fn after(&self, call: &Call<'_>) {
        self.run(call.function, true);
    }
}

/// Panics unless the operation failed because it would have waited for its own thread.
pub fn assert_reentrant<T>(result: Result<T>) {
    let Err(error) = result else {
        panic!("it would wait for its own thread")
    };
    assert!(
        error.function().is_none() && error.to_string().contains("re-entrant"),
        "{error}"
    );
}
