//! The gate of a capture, shared by the threads that enqueue work in it and the thread that ends it.
//!
//! Work is enqueued, and its accesses are recorded, between [`CaptureGate::enter`] and [`CaptureGate::leave`]. The end
//! of the capture waits for all threads that have entered, and threads that arrive during the end wait for it. The
//! driver therefore captures no work that was not recorded, and executes none that was. `tests` checks this with loom.

use super::sync::{Condvar, Mutex, MutexGuard};

/// The gate of one capture, with the log of its work.
pub(crate) struct CaptureGate<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// `None` before the capture has started, while it ends, and afterwards.
    log: Option<T>,
    /// The number of threads that have entered.
    entered: usize,
    /// `true` while the end of the capture waits for the threads that have entered.
    is_closing: bool,
    /// `true` while the capture is being ended.
    is_ending: bool,
}

/// The end of a capture. Dropping it, including on panic, wakes the waiting threads.
struct Ending<'a, T>(&'a CaptureGate<T>);

impl<T> CaptureGate<T> {
    #[inline]
    pub(crate) fn new() -> Self {
        let state = State {
            log: None,
            entered: 0,
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

    /// Enters an open capture; returns `false` if it has ended. A thread that `is_nested` in another access enters even
    /// while the end of the capture waits, since that end may wait for this thread.
    #[inline]
    pub(crate) fn enter(&self, is_nested: bool) -> bool {
        let mut state = self.state.lock();
        while state.is_ending || state.is_closing && !is_nested {
            self.changed.wait(&mut state);
        }
        let is_open = state.log.is_some();
        state.entered += usize::from(is_open);
        is_open
    }

    #[inline]
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();
        state.entered -= 1;
        if state.is_closing && state.entered == 0 {
            self.changed.notify_all();
        }
    }

    /// Runs `operation` with the log, unless the capture has ended.
    #[inline]
    pub(crate) fn with<R>(&self, operation: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.state.lock().log.as_mut().map(operation)
    }

    /// Ends the capture with `end` once no thread is in it, and runs `closed` before other threads continue. Returns
    /// `None` if it had already ended.
    #[inline]
    pub(crate) fn close<R>(
        &self,
        end: impl FnOnce(&mut T) -> R,
        closed: impl FnOnce(),
    ) -> Option<(T, R)> {
        let mut log = self.begin_end()?;
        let ending = Ending(self);
        let result = end(&mut log);
        closed();
        drop(ending);
        Some((log, result))
    }

    #[inline]
    fn begin_end(&self) -> Option<T> {
        let mut state = self.state.lock();
        state.is_closing = true;
        while state.entered > 0 {
            self.changed.wait(&mut state);
        }
        state.is_closing = false;
        let log = state.log.take();
        state.is_ending = log.is_some();
        self.wake(&state);
        log
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
