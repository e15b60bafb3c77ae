//! The end of a time limit.

use std::time::{Duration, Instant};

/// The end of a time limit. A limit that exceeds the range of the clock never ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Returns the deadline `limit` from now.
    pub(crate) fn after(limit: Duration) -> Self {
        Self(Instant::now().checked_add(limit))
    }

    /// Returns the deadline `extra` later than this one.
    pub(crate) fn extended_by(self, extra: Duration) -> Self {
        Self(self.0.and_then(|end| end.checked_add(extra)))
    }

    /// Returns the time until the deadline, which is zero once it has passed.
    pub(crate) fn remaining(self) -> Duration {
        match self.0 {
            Some(end) => end.saturating_duration_since(Instant::now()),
            None => Duration::MAX,
        }
    }

    pub(crate) fn has_passed(self) -> bool {
        self.remaining().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits beyond the range of the clock neither panic nor end.
    #[test]
    fn longest_limits_never_end() {
        for limit in [Duration::MAX, Duration::from_secs(u64::MAX / 2)] {
            for deadline in [
                Deadline::after(limit),
                Deadline::after(limit).extended_by(limit),
                Deadline::after(Duration::from_secs(1)).extended_by(limit),
            ] {
                assert!(!deadline.has_passed());
                assert!(deadline.remaining() > Duration::from_secs(1 << 40));
            }
        }
    }

    #[test]
    fn zero_has_passed_at_once() {
        assert!(Deadline::after(Duration::ZERO).has_passed());
    }
}
