//! The duration of recent waits for a stream or an event, which predicts the next one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The duration of the latest wait.
pub(crate) struct WaitHistory {
    /// In nanoseconds; [`UNKNOWN`] before the first wait.
    latest: AtomicU64,
    /// The greatest number whose wait was measured.
    measured: AtomicU64,
}

const UNKNOWN: u64 = u64::MAX;

impl WaitHistory {
    pub(crate) const fn new() -> Self {
        Self {
            latest: AtomicU64::new(UNKNOWN),
            measured: AtomicU64::new(0),
        }
    }

    /// Records the duration of the wait for `sequence`, which was observed to end.
    pub(crate) fn record(&self, sequence: u64, duration: Duration) {
        if self.measured.fetch_max(sequence, Ordering::Relaxed) < sequence {
            self.latest.store(nanoseconds(duration), Ordering::Relaxed);
        }
    }

    /// Records that the wait for `sequence` took at most `duration`: its end was not observed.
    pub(crate) fn record_bound(&self, sequence: u64, duration: Duration) {
        if self.measured.fetch_max(sequence, Ordering::Relaxed) < sequence {
            self.latest
                .fetch_min(nanoseconds(duration), Ordering::Relaxed);
        }
    }

    /// Returns the expected duration of the next wait; `None` before the first one.
    ///
    /// A wait for a stream begins when its mark is enqueued, and one for an event when its future
    /// is created.
    pub(crate) fn expected(&self) -> Option<Duration> {
        let latest = self.latest.load(Ordering::Relaxed);
        (latest != UNKNOWN).then(|| Duration::from_nanos(latest))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(UNKNOWN - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_wait_is_expected_next() {
        let history = WaitHistory::new();
        assert_eq!(history.expected(), None);
        history.record(1, Duration::from_micros(40));
        history.record(2, Duration::from_micros(30));
        history.record(1, Duration::from_secs(1));
        assert_eq!(history.expected(), Some(Duration::from_micros(30)));
    }

    /// A task that was polled late must not make the next wait look long.
    #[test]
    fn bound_only_lowers_the_expectation() {
        let history = WaitHistory::new();
        history.record_bound(1, Duration::from_micros(50));
        history.record_bound(2, Duration::from_secs(1));
        assert_eq!(history.expected(), Some(Duration::from_micros(50)));
        history.record_bound(3, Duration::from_micros(20));
        assert_eq!(history.expected(), Some(Duration::from_micros(20)));
    }
}
