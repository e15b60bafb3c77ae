//! Runs user code in the middle of an operation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use curium_driver::{Call, CallObserver, Function, Result};

/// A call observer that runs `action` once, on the thread that created the observer, when a call of
/// `function` begins or when it ends.
pub struct During<F> {
    function: Function,
    moment: Moment,
    thread: ThreadId,
    has_run: AtomicBool,
    action: F,
}

/// A point of a driver call.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Moment {
    Begin,
    End,
}

impl<F: Fn() + Send + Sync> During<F> {
    /// Returns an observer that runs `action` before the first call of `function`.
    pub fn call_of(function: Function, action: F) -> Self {
        Self {
            function,
            moment: Moment::Begin,
            thread: thread::current().id(),
            has_run: AtomicBool::new(false),
            action,
        }
    }

    /// Returns an observer that runs `action` after the first call of `function`.
    pub fn end_of(function: Function, action: F) -> Self {
        Self {
            moment: Moment::End,
            ..Self::call_of(function, action)
        }
    }

    fn run(&self, function: Function, moment: Moment) {
        let is_observed = function == self.function
            && moment == self.moment
            && thread::current().id() == self.thread;
        if is_observed && !self.has_run.swap(true, Ordering::Relaxed) {
            (self.action)();
        }
    }
}

impl<F: Fn() + Send + Sync> CallObserver for During<F> {
    fn before(&self, function: Function) {
        self.run(function, Moment::Begin);
    }

    fn after(&self, call: &Call<'_>) {
        self.run(call.function, Moment::End);
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
