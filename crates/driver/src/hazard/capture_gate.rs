//! The gate of a capture, shared by the threads that enqueue work in it and the thread that ends it.
//!
//! Work is enqueued, and its accesses are recorded, between [`CaptureGate::enter`] and [`CaptureGate::leave`]. The end
//! of the capture waits for all other threads that have entered, and threads that arrive during the end wait for it.
//! The driver therefore captures no work that was not recorded, and executes none that was. `tests` checks this with
//! loom.
//!
//! If the thread that ends the capture has entered it itself and not left, it cannot wait for itself: the capture ends,
//! and is reported as [disturbed](Closed::is_disturbed).

use parking_lot::RawThreadId;
use parking_lot::lock_api::GetThreadId as _;

use super::sync::{Condvar, Mutex, MutexGuard};

/// The number of a thread, which no other live thread has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ThreadNumber(usize);

impl ThreadNumber {
    /// Returns the number of the calling thread.
    #[inline]
    pub(crate) fn current() -> Self {
        Self(RawThreadId::INIT.nonzero_thread_id().get())
    }

    #[cfg(all(test, loom))]
    pub(crate) fn new(number: usize) -> Self {
        Self(number)
    }
}

/// The gate of one capture, with the log of its work.
pub(crate) struct CaptureGate<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// `None` before the capture has started, while it ends, and afterwards.
    log: Option<T>,
    /// The threads that have entered and not left, each as often as it has entered.
    entered: Vec<ThreadNumber>,
    /// `true` while the end of the capture waits for the threads that have entered.
    is_closing: bool,
    /// `true` while the capture is being ended.
    is_ending: bool,
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
    #[inline]
    pub(crate) fn new() -> Self {
        let state = State {
            log: None,
            entered: Vec::new(),
            is_closing: false,
            is_ending: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Opens the gate.
    #[inline]
    pub(crate) fn open(&self, log: T) {
        self.state.lock().log = Some(log);
    }

    /// Enters an open capture on `thread`; returns `false` if it has ended. A thread that `is_nested` in another access
    /// enters even while the end of the capture waits, since that end may wait for this thread.
    #[inline]
    pub(crate) fn enter(&self, thread: ThreadNumber, is_nested: bool) -> bool {
        let mut state = self.state.lock();
        while state.is_ending || state.is_closing && !is_nested {
            self.changed.wait(&mut state);
        }
        let is_open = state.log.is_some();
        if is_open {
            state.entered.push(thread);
        }
        is_open
    }

    #[inline]
    pub(crate) fn leave(&self, thread: ThreadNumber) {
        let mut state = self.state.lock();
        if let Some(index) = state.entered.iter().position(|entered| *entered == thread) {
            state.entered.swap_remove(index);
        }
        if state.is_closing {
            self.changed.notify_all();
        }
    }

    /// Runs `operation` with the log, unless the capture has ended.
    #[inline]
    pub(crate) fn with<R>(&self, operation: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.state.lock().log.as_mut().map(operation)
    }

    /// Ends the capture with `end` on `thread` once no other thread is in it, and runs `closed` before other threads
    /// continue. Returns `None` if it had already ended.
    #[inline]
    pub(crate) fn close<R>(
        &self,
        thread: ThreadNumber,
        end: impl FnOnce(&mut T) -> R,
        closed: impl FnOnce(),
    ) -> Option<Closed<T, R>> {
        let (mut log, is_disturbed) = self.begin_end(thread)?;
        let ending = Ending(self);
        let result = end(&mut log);
        closed();
        drop(ending);
        Some(Closed {
            log,
            result,
            is_disturbed,
        })
    }

    /// Returns the log, and `true` if `thread` itself is in the capture.
    #[inline]
    fn begin_end(&self, thread: ThreadNumber) -> Option<(T, bool)> {
        let mut state = self.state.lock();
        state.is_closing = true;
        while state.entered.iter().any(|entered| *entered != thread) {
            self.changed.wait(&mut state);
        }
        state.is_closing = false;
        let is_disturbed = !state.entered.is_empty();
        let log = state.log.take();
        state.is_ending = log.is_some();
        self.wake(&state);
        log.map(|log| (log, is_disturbed))
    }

    #[inline]
    fn wake(&self, _state: &MutexGuard<'_, State<T>>) {
        self.changed.notify_all();
    }
}

impl<T> Drop for Ending<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_ending = false;
        self.0.wake(&state);
    }
}
