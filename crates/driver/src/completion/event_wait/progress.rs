//! The state that a waiting task shares with the background thread.

#[cfg(test)]
mod tests;

use crate::base::sync::Mutex;

/// The progress of a wait: `W` is the waker of the task, and `R` the result.
pub(super) struct Progress<W, R> {
    stage: Mutex<Stage<W, R>>,
}

enum Stage<W, R> {
    Pending {
        /// `None` before the first registration, and once the task was woken early.
        waker: Option<W>,
        /// `true` if the background thread has an entry, or is about to.
        is_watched: bool,
        /// `true` if the task may be woken shortly before the expected end, to spin.
        may_wake_early: bool,
        /// `true` once the task was woken early, which happens once.
        was_early: bool,
    },
    /// The result, until it is taken.
    Ended(Option<R>),
}

/// The state of a wait that its task observes.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum State<R> {
    /// The task is registered, and is woken at the end.
    Registered,
    /// The task is not registered: it was woken early, or not polled yet.
    Woken,
    /// The result; `None` if it was taken before.
    Ended(Option<R>),
}

/// The result of a registration.
pub(super) struct Registered<W> {
    /// `true` if the caller must add an entry of the background thread.
    pub(super) begins: bool,
    /// The previous waker, which the caller drops without a lock.
    pub(super) replaced: Option<W>,
}

impl<W, R> Progress<W, R> {
    pub(super) fn new() -> Self {
        Self {
            stage: Mutex::new(Stage::Pending {
                waker: None,
                is_watched: false,
                may_wake_early: false,
                was_early: false,
            }),
        }
    }

    /// Records that the caller adds an entry before a task is registered.
    pub(super) fn begin(&self) {
        if let Stage::Pending { is_watched, .. } = &mut *self.stage.lock() {
            *is_watched = true;
        }
    }

    /// Returns the state, and takes the result if there is one.
    pub(super) fn state(&self) -> State<R> {
        match &mut *self.stage.lock() {
            Stage::Pending { waker: Some(_), .. } => State::Registered,
            Stage::Pending { waker: None, .. } => State::Woken,
            Stage::Ended(result) => State::Ended(result.take()),
        }
    }

    /// Stores the waker of the task, or returns it if the wait has ended in the meantime.
    pub(super) fn register(&self, new: W, may_wake: bool) -> Result<Registered<W>, W> {
        match &mut *self.stage.lock() {
            Stage::Ended(_) => Err(new),
            Stage::Pending {
                waker,
                is_watched,
                may_wake_early,
                was_early,
            } => {
                *may_wake_early = may_wake && !*was_early;
                Ok(Registered {
                    begins: !std::mem::replace(is_watched, true),
                    replaced: waker.replace(new),
                })
            }
        }
    }

    /// Ends the wait, and returns the waker of a registered task.
    pub(super) fn end(&self, result: R) -> Option<W> {
        match std::mem::replace(&mut *self.stage.lock(), Stage::Ended(Some(result))) {
            Stage::Pending { waker, .. } => waker,
            Stage::Ended(_) => None,
        }
    }

    /// Returns the waker of a task that may be woken early. The entry of the background thread is
    /// then finished.
    pub(super) fn take_early(&self) -> Option<W> {
        match &mut *self.stage.lock() {
            Stage::Pending {
                waker,
                is_watched,
                may_wake_early: true,
                was_early,
            } => {
                let taken = waker.take()?;
                *is_watched = false;
                *was_early = true;
                Some(taken)
            }
            Stage::Pending { .. } | Stage::Ended(_) => None,
        }
    }
}
