//! Vector clocks: the happens-before order of queued work.

/// The progress of each chain of work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock(Vec<u32>);

/// The position of an operation in its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) chain: u32,
    /// The position, counted from 1.
    pub(super) time: u32,
}

impl Clock {
    /// Returns `true` if the clock is ordered after a moment.
    pub(super) fn is_after(&self, moment: Moment) -> bool {
        self.0
            .get(moment.chain as usize)
            .is_some_and(|time| *time >= moment.time)
    }

    /// Orders the clock after a moment.
    pub(super) fn advance_to(&mut self, moment: Moment) {
        let chain = moment.chain as usize;
        if self.0.len() <= chain {
            self.0.resize(chain + 1, 0);
        }
        self.0[chain] = self.0[chain].max(moment.time);
    }

    /// Merges another clock. Returns `true` if this changes the clock.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut has_changed = false;
        for (time, other) in self.0.iter_mut().zip(&other.0) {
            has_changed |= *time < *other;
            *time = (*time).max(*other);
        }
        has_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(chain: u32, time: u32) -> Moment {
        Moment { chain, time }
    }

    #[test]
    fn joined_clock_is_ordered_after_both() {
        let mut clock = Clock::default();
        let mut other = Clock::default();
        clock.advance_to(moment(0, 3));
        other.advance_to(moment(2, 1));
        assert!(clock.is_after(moment(0, 2)));
        assert!(!clock.is_after(moment(0, 4)) && !clock.is_after(moment(2, 1)));
        assert!(clock.join(&other));
        assert!(!clock.join(&other), "nothing changes the second time");
        assert!(clock.is_after(moment(0, 3)) && clock.is_after(moment(2, 1)));
        assert!(!clock.is_after(moment(1, 1)));
    }
}
