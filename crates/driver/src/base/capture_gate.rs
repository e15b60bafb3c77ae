//! The gate of a capture, shared by the threads that enqueue work in it and the thread that ends
//! it.
//!
//! Work is enqueued, and its accesses are recorded, between [`CaptureGate::enter`] and
//! [`CaptureGate::leave`]. The end of the capture waits for all other threads that have entered,
//! and threads that arrive during the end wait for it. The driver therefore captures no work that
//! was not recorded, and executes none that was. `hazard/tests.rs` checks this with loom.
//!
//! If the thread that ends the capture has entered it itself and not left, it cannot wait for
//! itself: the capture ends, and is reported as [disturbed](Closed::is_disturbed).

use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::sync::{Condvar, Mutex, current_thread};

/// The gate of one capture, with the log of its work.
pub(crate) struct CaptureGate<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    is_open: AtomicBool,
}

struct State<T> {
    /// `None` before the capture has started, while it ends, and afterwards.
    log: Option<T>,
    /// The threads that have entered and not left, each as often as it has entered.
    entered: Vec<usize>,
    end: End,
}

/// The progress of the end of a capture.
#[derive(Clone, Copy, Eq, PartialEq)]
enum End {
    None,
    /// The ending thread waits for the threads that have entered.
    Waiting,
    /// The driver ends the capture.
    Ending,
}

/// A capture that has ended.
pub(crate) struct Closed<T, R> {
    pub(crate) log: T,
    /// The result of the function that ended it.
    pub(crate) result: R,
    /// `true` if the thread that ended it had entered it, so an access may not be recorded.
    pub(crate) is_disturbed: bool,
}

/// The end of a capture. Dropping it, including on panic, wakes the waiting threads.
struct Ending<'a, T>(&'a CaptureGate<T>);

impl<T> CaptureGate<T> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                log: None,
                entered: Vec::new(),
                end: End::None,
            }),
            changed: Condvar::new(),
            is_open: AtomicBool::new(false),
        }
    }

    /// Opens the gate.
    pub(crate) fn open(&self, log: T) {
        self.state.lock().log = Some(log);
        self.is_open.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Enters an open capture; returns `false` if it has ended. A thread that `is_nested` in
    /// another access enters even while the end of the capture waits, since that end may wait for
    /// this thread.
    pub(crate) fn enter(&self, is_nested: bool) -> bool {
        let mut state = self.state.lock();
        while state.end == End::Ending || state.end == End::Waiting && !is_nested {
            self.changed.wait(&mut state);
        }
        let is_open = state.log.is_some();
        if is_open {
            state.entered.push(current_thread());
        }
        is_open
    }

    pub(crate) fn leave(&self) {
        let thread = current_thread();
        let mut state = self.state.lock();
        if let Some(index) = state.entered.iter().position(|entered| *entered == thread) {
            state.entered.swap_remove(index);
        }
        if state.end == End::Waiting {
            self.changed.notify_all();
        }
    }

    /// Runs `operation` with the log, unless the capture has ended.
    pub(crate) fn with<R>(&self, operation: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.state.lock().log.as_mut().map(operation)
    }

    /// Ends the capture with `end` once no other thread is in it. Returns `None` if it had already
    /// ended.
    pub(crate) fn close<R>(&self, end: impl FnOnce(&mut T) -> R) -> Option<Closed<T, R>> {
        let thread = current_thread();
        let mut state = self.state.lock();
        state.log.as_ref()?;
        state.end = End::Waiting;
        while state.entered.iter().any(|entered| *entered != thread) {
            self.changed.wait(&mut state);
        }
        let mut log = state.log.take()?;
        let is_disturbed = !state.entered.is_empty();
        state.end = End::Ending;
        drop(state);
        let ending = Ending(self);
        let result = end(&mut log);
        drop(ending);
        Some(Closed {
            log,
            result,
            is_disturbed,
        })
    }
}

impl<T> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        self.0.is_open.store(false, Ordering::Release);
        self.0.state.lock().end = End::None;
        self.0.changed.notify_all();
    }
}
