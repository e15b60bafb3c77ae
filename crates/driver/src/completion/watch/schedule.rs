//! The times at which the word of a timeline is loaded, or an event is queried.

use std::time::Duration;

/// The shortest interval between two loads, except near the expected end.
pub(super) const MIN_PAUSE: Duration = Duration::from_micros(20);
/// The longest interval between two polls without a callback, if the end is not expected.
const MAX_PAUSE: Duration = Duration::from_millis(20);
/// The longest interval between two polls without a callback, near the expected end.
const MAX_NEAR_PAUSE: Duration = Duration::from_millis(5);
/// The longest interval between two loads of a word with a callback.
const MAX_PAUSE_WITH_CALLBACK: Duration = Duration::from_millis(100);
/// The age up to which the word of work of unknown duration is loaded often.
const DENSE_POLLING_PERIOD: Duration = Duration::from_millis(1);
/// The number of polls in the expected duration, before its end, if the end is not awaited by
/// spinning.
const EARLY_POLLS_PER_DURATION: u32 = 32;
/// The interval between the first wait for a word and the first query of its event.
pub(super) const MIN_QUERY_INTERVAL: Duration = Duration::from_millis(1);
/// The additional interval for each other timeline: about ten times the cost of a load.
const PAUSE_PER_TIMELINE: Duration = Duration::from_micros(3);
/// The longest duration whose end is awaited by spinning, and beyond which the driver's callback is
/// used.
pub(crate) const MAX_SPIN: Duration = Duration::from_millis(2);
/// The number of polls in the expected duration, near its end, if the end is not awaited by
/// spinning. With the window around the end, they are about 20 for each wait.
const POLLS_PER_DURATION: u32 = 256;
/// The minimum time before and after the expected end for which the word is loaded continuously.
const MIN_SPIN_WINDOW: Duration = Duration::from_micros(50);
/// The time before the expected end at which a task is woken, so that it spins when the end comes.
const WAKE_LEAD: Duration = Duration::from_micros(80);

/// The state of the first wait on a timeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// The time since its mark was enqueued.
    pub(super) age: Duration,
    /// The duration of the previous wait on the stream.
    pub(super) expected: Option<Duration>,
    /// `true` if the driver calls back at the mark.
    pub(super) has_callback: bool,
}

impl Schedule {
    /// Returns `true` if a task that spins should be woken now, and before the expected end.
    pub(super) fn is_early_wake_due(self) -> bool {
        self.spin_target()
            .is_some_and(|expected| self.age + WAKE_LEAD >= expected && self.age < expected)
    }

    /// Returns the interval until the next load, with this number of other timelines.
    pub(super) fn pause(self, others: u32) -> Duration {
        self.pause_without_others().max(PAUSE_PER_TIMELINE * others)
    }

    /// Returns the expected duration if its end can be awaited by spinning.
    fn spin_target(self) -> Option<Duration> {
        self.expected.filter(|expected| *expected <= MAX_SPIN)
    }

    fn pause_without_others(self) -> Duration {
        let Some(expected) = self.expected else {
            return self.sparse_pause();
        };
        if expected <= MAX_SPIN {
            return self.pause_around(expected, Duration::ZERO, self.sparse_pause());
        }
        if self.has_callback {
            return self.sparse_pause();
        }
        let near = (expected / POLLS_PER_DURATION).min(MAX_NEAR_PAUSE);
        let far = if self.age < expected {
            (self.age / 2).max(expected / EARLY_POLLS_PER_DURATION)
        } else {
            ((self.age - expected) / 4).clamp(near, MAX_PAUSE)
        };
        self.pause_around(expected, near, far)
    }

    /// Returns `near` within the window around the expected end, and `far` outside of it, but at
    /// most the time until the window.
    fn pause_around(self, expected: Duration, near: Duration, far: Duration) -> Duration {
        let window = (expected / 24).max(MIN_SPIN_WINDOW);
        let begin = expected.saturating_sub(window.max(WAKE_LEAD));
        if self.age < begin {
            far.min(begin - self.age)
        } else if self.age <= expected + window {
            near.min(far)
        } else {
            far
        }
    }

    /// Returns the interval for an end that is not expected.
    fn sparse_pause(self) -> Duration {
        if !self.has_callback {
            return (self.age / 8).clamp(MIN_PAUSE, MAX_PAUSE);
        }
        // The callback wakes the thread unless the context fails. Work of unknown duration may
        // still be short.
        if self.expected.is_none() && self.age < DENSE_POLLING_PERIOD {
            (self.age / 4).max(2 * MIN_PAUSE)
        } else {
            self.age.clamp(MIN_QUERY_INTERVAL, MAX_PAUSE_WITH_CALLBACK)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of loads of a word that is reached after `duration`, and the time between
    /// the end and the load that finds it.
    fn simulate(
        duration: Duration,
        expected: Option<Duration>,
        has_callback: bool,
    ) -> (u32, Duration) {
        let mut age = MIN_PAUSE;
        let mut loads = 1;
        while age < duration {
            let schedule = Schedule {
                age,
                expected,
                has_callback,
            };
            // Continuous loads are about 0.2 µs apart.
            age += schedule.pause(0).max(Duration::from_nanos(200));
            loads += 1;
        }
        (loads, age - duration)
    }

    #[test]
    fn expected_end_is_found_at_once() {
        for microseconds in [20, 50, 200, 1_000, 1_900] {
            let duration = Duration::from_micros(microseconds);
            for expected in [duration, duration * 33 / 32, duration * 31 / 32] {
                let (_, late) = simulate(duration, Some(expected), false);
                assert!(late < Duration::from_micros(1), "{duration:?}: {late:?}");
            }
        }
    }

    /// A long wait without a callback is looked at more often near its expected end.
    #[test]
    fn long_end_without_a_callback_is_found_early() {
        for milliseconds in [3, 20, 300, 5_000] {
            let duration = Duration::from_millis(milliseconds);
            for expected in [duration, duration * 65 / 64, duration * 63 / 64] {
                let (_, late) = simulate(duration, Some(expected), false);
                assert!(late <= duration / 200, "{duration:?}: {late:?}");
            }
        }
    }

    #[test]
    fn unexpected_end_is_late_by_a_fraction() {
        for microseconds in [100, 1_000, 10_000, 300_000] {
            let duration = Duration::from_micros(microseconds);
            for (expected, fraction) in
                [(None, 8), (Some(duration / 3), 6), (Some(duration * 3), 2)]
            {
                let (_, late) = simulate(duration, expected, false);
                assert!(
                    late <= (duration / fraction).max(MIN_PAUSE),
                    "{duration:?}: {late:?}"
                );
            }
        }
    }

    /// A wake-up of the thread takes about 30 µs of CPU time.
    #[test]
    fn idle_second_takes_few_looks() {
        let second = Duration::from_secs(1);
        for expected in [None, Some(second), Some(second * 9 / 10)] {
            let (looks, _) = simulate(second, expected, true);
            assert!(looks <= 30, "{expected:?} with a callback: {looks}");
        }
        for (expected, most) in [
            (Some(second), 25),
            (Some(second * 9 / 10), 40),
            (Some(second * 11 / 10), 25),
            (None, 110),
        ] {
            let (looks, _) = simulate(second, expected, false);
            assert!(looks <= most, "{expected:?}: {looks}");
        }
    }

    /// After a short wait, the looks around its end do not repeat.
    #[test]
    fn idle_second_after_a_short_wait_takes_few_looks() {
        let expected = Duration::from_micros(20);
        let (window, _) = simulate(Duration::from_micros(100), Some(expected), false);
        let (looks, _) = simulate(Duration::from_secs(1), Some(expected), false);
        assert!(looks <= window + 110, "{looks} of which {window}");
    }

    /// The task wakes up and spins until the end.
    #[test]
    fn early_wake_precedes_the_expected_end() {
        let schedule = Schedule {
            age: Duration::from_micros(900),
            expected: Some(Duration::from_millis(1)),
            has_callback: false,
        };
        let at = |microseconds| Schedule {
            age: Duration::from_micros(microseconds),
            ..schedule
        };
        assert!(!at(900).is_early_wake_due());
        assert!(at(925).is_early_wake_due());
        assert!(!at(1_001).is_early_wake_due());
    }

    #[test]
    fn many_timelines_share_the_thread() {
        let schedule = Schedule {
            age: Duration::from_micros(20),
            expected: Some(Duration::from_micros(20)),
            has_callback: false,
        };
        assert_eq!(schedule.pause(0), Duration::ZERO);
        assert!(schedule.pause(9_999) >= Duration::from_millis(20));
    }
}
