//! The plan of a run.

/// Filters that select several subjects.
const SUBJECTS: [(&str, &[&str]); 1] = [("memory", &["copy/", "allocate/", "calls/"])];

/// The measurements of a run, and their repetitions.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Plan {
    /// Text that the selected ids contain, or the name of several subjects; empty for all.
    filter: String,
    pub(super) rounds: usize,
    /// Launches per round: fewer than fill the driver's queue.
    pub(super) launches: usize,
    /// Allocations per round from the driver's pool.
    pub(super) pool_pairs: usize,
    /// Allocations per round from Curium's cache, which is faster.
    pub(super) cached_pairs: usize,
    /// Synchronous allocations per round.
    pub(super) synchronous_pairs: usize,
    /// Deallocations and allocations per round among live blocks.
    pub(super) replaced: usize,
    pub(super) threads: &'static [usize],
    pub(super) copies: &'static [usize],
    pub(super) sizes: &'static [usize],
    pub(super) live: &'static [usize],
    /// Numbers of live blocks of synchronous allocations.
    pub(super) synchronous_live: &'static [usize],
    /// Numbers of uses of the buffer whose driver calls are counted.
    pub(super) uses: &'static [usize],
}

impl Plan {
    /// Returns the full plan: minutes on a GPU.
    pub(in crate::bench) fn hardware() -> Self {
        Self {
            filter: String::new(),
            rounds: 101,
            launches: 400,
            pool_pairs: 2_000,
            cached_pairs: 100_000,
            synchronous_pairs: 10,
            replaced: 4_000,
            threads: &[1, 2, 4, 8],
            copies: &[
                1 << 10,
                4 << 10,
                64 << 10,
                256 << 10,
                1 << 20,
                4 << 20,
                16 << 20,
                64 << 20,
                256 << 20,
                1 << 30,
                4 << 30,
            ],
            sizes: &[
                1 << 10,
                16 << 10,
                256 << 10,
                1 << 20,
                16 << 20,
                64 << 20,
                256 << 20,
                1 << 30,
                4 << 30,
            ],
            live: &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
            synchronous_live: &[1, 100, 10_000],
            uses: &[1, 10, 100],
        }
    }

    /// Returns a shorter plan: seconds on a GPU.
    pub(in crate::bench) fn quick() -> Self {
        Self {
            rounds: 11,
            threads: &[1, 2],
            copies: &[4 << 10, 256 << 10, 4 << 20, 64 << 20],
            sizes: &[1 << 10, 1 << 20],
            live: &[1, 100, 10_000],
            synchronous_live: &[1, 100],
            ..Self::hardware()
        }
    }

    /// Returns a plan that takes seconds on the simulator. Its times are not representative of
    /// hardware.
    pub(in crate::bench) fn simulator() -> Self {
        Self {
            filter: String::new(),
            rounds: 5,
            launches: 20,
            pool_pairs: 20,
            cached_pairs: 1_000,
            synchronous_pairs: 10,
            replaced: 100,
            threads: &[1, 2],
            copies: &[4 << 10, 1 << 20],
            sizes: &[1 << 10, 1 << 20],
            live: &[1, 100, 1_000],
            synchronous_live: &[1, 100],
            uses: &[1, 10],
        }
    }

    /// Keeps the measurements whose id contains `filter`; `memory` selects copies, allocation and
    /// the calls for a buffer.
    pub(in crate::bench) fn with_filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = filter.into();
        self
    }

    /// Sets the rounds of each measurement. Copies take at most 31, and fewer if they are large.
    pub(in crate::bench) fn with_rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// Returns `true` if the plan contains the measurement with this id.
    pub(in crate::bench) fn wants(&self, id: &str) -> bool {
        match SUBJECTS.iter().find(|(name, _)| *name == self.filter) {
            Some((_, subjects)) => subjects.iter().any(|subject| id.starts_with(subject)),
            None => id.contains(&self.filter),
        }
    }

    /// Returns the rounds of a copy of `bytes` bytes.
    pub(super) fn copy_rounds(&self, bytes: usize) -> usize {
        self.rounds.min(((8 << 30) / bytes).clamp(5, 31))
    }

    /// Returns the rounds of synchronous allocations, which are slow and vary little.
    pub(super) fn synchronous_rounds(&self) -> usize {
        self.rounds.min(15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_selects_ids_or_subjects() {
        const IDS: [&str; 4] = [
            "launch/threads/1",
            "copy/pinned-to-device/4096",
            "allocate/live/1",
            "calls/one-stream/1",
        ];
        for (filter, selected) in [
            ("memory", [false, true, true, true]),
            ("live", [false, false, true, false]),
            ("", [true; 4]),
        ] {
            let plan = Plan::simulator().with_filter(filter);
            assert_eq!(IDS.map(|id| plan.wants(id)), selected, "{filter}");
        }
    }

    #[test]
    fn large_copies_are_measured_less_often() {
        let plan = Plan::hardware();
        assert_eq!(
            [1 << 10, 1 << 30, 4 << 30].map(|bytes| plan.copy_rounds(bytes)),
            [31, 8, 5]
        );
    }
}
