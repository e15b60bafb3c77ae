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
    pub(super) fn knows(&self, moment: Moment) -> bool {
        self.0
            .get(moment.chain as usize)
            .is_some_and(|time| *time >= moment.time)
    }

    /// Orders the clock after a moment.
    pub(super) fn note(&mut self, Moment { chain, time }: Moment) {
        let chain = chain as usize;
        if self.0.len() <= chain {
            self.0.resize(chain + 1, 0);
        }
        self.0[chain] = self.0[chain].max(time);
    }

    /// Merges another clock. Returns `true` if this changes the clock.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut is_news = false;
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            is_news |= *own < *other;
            *own = (*own).max(*other);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_clock_is_ordered_after_both() {
        let at = |chain, time| Moment { chain, time };
        let (mut one, mut other) = (Clock::default(), Clock::default());
        one.note(at(0, 3));
        other.note(at(2, 1));
        assert!(one.knows(at(0, 2)) && !one.knows(at(0, 4)) && !one.knows(at(2, 1)));
        assert!(one.join(&other));
        assert!(!one.join(&other), "it is no news");
        assert!(one.knows(at(0, 3)) && one.knows(at(2, 1)) && !one.knows(at(1, 1)));
    }
}
