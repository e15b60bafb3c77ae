//! The time for which a poll spins.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::base::wait_history::WaitHistory;

/// The number of tasks that wait for points in this process.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// The longest time for which a poll spins by default.
const MAX_SPIN: Duration = Duration::from_micros(100);
/// The time for which the first poll spins if no earlier wait is known.
const FIRST_SPIN: Duration = Duration::from_micros(20);

/// A task that counts as waiting for as long as this value exists.
pub(super) struct WaitingTask(());

/// The reason for which a poll may spin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Occasion {
    /// The future is polled for the first time.
    FirstPoll,
    /// The background thread has woken the task.
    Woken,
}

impl WaitingTask {
    pub(super) fn begin() -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for WaitingTask {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the time for which a poll may spin by default. The wait began at `since`, and `history`
/// has the previous one.
pub(super) fn default_spin(occasion: Occasion, history: &WaitHistory, since: Instant) -> Duration {
    // A task that was woken counts itself.
    let itself = usize::from(occasion == Occasion::Woken);
    if WAITING.load(Ordering::Relaxed) > itself {
        return Duration::ZERO;
    }
    match (occasion, history.expected()) {
        (Occasion::Woken, _) => MAX_SPIN,
        (Occasion::FirstPoll, None) => FIRST_SPIN,
        (Occasion::FirstPoll, Some(expected)) => {
            let remaining = (expected + expected / 4).saturating_sub(since.elapsed());
            if remaining <= MAX_SPIN {
                remaining
            } else {
                Duration::ZERO
            }
        }
    }
}
