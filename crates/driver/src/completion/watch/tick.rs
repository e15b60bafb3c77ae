//! The times at which long intervals end.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The shortest interval that is aligned. Shorter ones wait for an end that may be near.
const MIN_ALIGNED: Duration = Duration::from_millis(1);

/// The time from which ticks are counted.
static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// Returns the end of an interval that begins now. A long one is shortened, by less than a quarter,
/// to a time that it has in common with other intervals of similar length.
pub(super) fn due(now: Instant, interval: Duration) -> Instant {
    due_since(*ORIGIN.get_or_init(|| now), now, interval)
}

fn due_since(origin: Instant, now: Instant, interval: Duration) -> Instant {
    let due = now + interval;
    if interval < MIN_ALIGNED {
        return due;
    }
    // The power of two makes the ends of long intervals ends of short ones as well.
    let quarter = (interval / 4).as_nanos() as u64;
    let tick = 1 << quarter.ilog2();
    let since_origin = due.saturating_duration_since(origin).as_nanos() as u64;
    due - Duration::from_nanos(since_origin % tick)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn intervals_of_similar_length_end_together() {
        let origin = Instant::now();
        let mut ends = BTreeSet::new();
        for index in 0..1_000_u32 {
            let now = origin + Duration::from_micros(10) * index;
            ends.insert(due_since(origin, now, Duration::from_millis(20)));
        }
        assert!(ends.len() <= 4, "{} wake-ups in 10 ms", ends.len());
    }

    #[test]
    fn aligned_interval_is_at_most_a_quarter_shorter() {
        let origin = Instant::now();
        for microseconds in [1_u64, 900, 1_000, 1_001, 7_777, 100_000] {
            let interval = Duration::from_micros(microseconds);
            let now = origin + Duration::from_nanos(123_456_789);
            let due = due_since(origin, now, interval);
            assert!(due <= now + interval, "{interval:?}");
            assert!(due > now + interval * 3 / 4, "{interval:?}");
            assert!(
                interval >= MIN_ALIGNED || due == now + interval,
                "{interval:?}"
            );
        }
    }
}
