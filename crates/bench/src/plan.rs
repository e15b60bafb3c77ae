//! How much is measured.

/// Names for several subjects at once.
const SUBJECTS: [(&str, &[&str]); 1] = [("memory", &["copy/", "allocate/", "calls/"])];

/// What is measured, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Part of the ids that are wanted, or the name of several subjects; all are if it is empty.
    filter: String,
    pub(crate) rounds: usize,
    /// Launches in a round: fewer than the driver queues before it has the host wait.
    pub(crate) launches: u32,
    /// Allocations in a round of the driver's pool.
    pub(crate) pool_pairs: usize,
    /// Allocations in a round of Curium's cache, which takes less time for each.
    pub(crate) cached_pairs: usize,
    /// Allocations in a round of memory that is of no pool.
    pub(crate) plain_pairs: usize,
    /// Frees and allocations in a round in the midst of live blocks.
    pub(crate) churned: usize,
    pub(crate) threads: &'static [usize],
    pub(crate) copies: &'static [usize],
    pub(crate) sizes: &'static [usize],
    pub(crate) live: &'static [usize],
    /// Live blocks that are of no pool.
    pub(crate) plain_live: &'static [usize],
    /// How often a buffer is used whose calls are counted.
    pub(crate) uses: &'static [usize],
}

impl Plan {
    /// All there is: some minutes on a GPU.
    #[must_use]
    pub fn hardware() -> Self {
        Self {
            filter: String::new(),
            rounds: 101,
            launches: 400,
            pool_pairs: 2_000,
            cached_pairs: 100_000,
            plain_pairs: 10,
            churned: 4_000,
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
            sizes: &[1 << 10, 16 << 10, 256 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30, 4 << 30],
            live: &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
            plain_live: &[1, 100, 10_000],
            uses: &[1, 10, 100],
        }
    }

    /// Less of each: some seconds on a GPU, for a first impression.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            rounds: 11,
            threads: &[1, 2],
            copies: &[4 << 10, 256 << 10, 4 << 20, 64 << 20],
            sizes: &[1 << 10, 1 << 20],
            live: &[1, 100, 10_000],
            plain_live: &[1, 100],
            ..Self::hardware()
        }
    }

    /// What the simulator does in some seconds. Its times say nothing of hardware, but that everything works.
    #[must_use]
    pub fn simulator() -> Self {
        Self {
            filter: String::new(),
            rounds: 5,
            launches: 20,
            pool_pairs: 20,
            cached_pairs: 1_000,
            plain_pairs: 10,
            churned: 100,
            threads: &[1, 2],
            copies: &[4 << 10, 1 << 20],
            sizes: &[1 << 10, 1 << 20],
            live: &[1, 100, 1_000],
            plain_live: &[1, 100],
            uses: &[1, 10],
        }
    }

    /// Only the measurements whose id contains `filter`; with `memory`, those of copies, of allocation and of the calls for a buffer.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = filter.into();
        self
    }

    /// With so many rounds for each measurement. Copies take no more than 31, and fewer if they are large.
    #[must_use]
    pub fn with_rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// Whether the measurement with this id is to be made.
    #[must_use]
    pub fn wants(&self, id: &str) -> bool {
        match SUBJECTS.iter().find(|(name, _)| *name == self.filter) {
            Some((_, subjects)) => subjects.iter().any(|subject| id.starts_with(subject)),
            None => id.contains(&self.filter),
        }
    }

    /// How often a copy of so many bytes is measured.
    pub(crate) fn copy_rounds(&self, bytes: usize) -> usize {
        self.rounds.min(((8 << 30) / bytes).clamp(5, 31))
    }

    /// How often memory of no pool is measured, which takes long and varies little.
    pub(crate) fn plain_rounds(&self) -> usize {
        self.rounds.min(15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_is_a_part_of_ids_or_names_subjects() {
        let wanted = |filter: &str| {
            let plan = Plan::simulator().with_filter(filter);
            ["launch/threads/1", "copy/pinned-to-device/4096", "allocate/live/1", "calls/one-stream/1"]
                .map(|id| plan.wants(id))
        };
        assert_eq!(wanted("memory"), [false, true, true, true]);
        assert_eq!(wanted("live"), [false, false, true, false]);
        assert_eq!(wanted(""), [true; 4]);
    }

    #[test]
    fn large_copies_are_measured_less_often() {
        let plan = Plan::hardware();
        assert_eq!([1 << 10, 1 << 30, 4 << 30].map(|bytes| plan.copy_rounds(bytes)), [31, 8, 5]);
    }
}
