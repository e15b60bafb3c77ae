//! A barrier of a block. When all expected threads have arrived, a new phase begins.

use super::op::Op;
use crate::exec::frame::Frame;

/// One of a block's barriers: sixteen named barriers, and one for each warpgroup.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Barrier {
    arrived: u32,
    /// The number of threads that the phase waits for; 0 for all live threads.
    expected: u32,
    votes: u32,
    phase: u32,
    /// Results of the last two phases. A fragment may read its result after the next phase has
    /// begun.
    results: [Tally; 2],
}

/// The votes in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    votes: u32,
    threads: u32,
}

/// The reduction of `bar.red`; `Op::e` of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Reduction {
    /// No reduction: `bar.sync`, `bar.arrive`.
    None,
    /// The number of true predicates.
    Count,
    /// `true` if all predicates are true.
    All,
    /// `true` if at least one predicate is true.
    Any,
}

impl Barrier {
    /// Counts `threads` of the block's `live` threads as arrived, and returns the phase that they
    /// wait for.
    pub(crate) fn arrive(&mut self, wait: Wait, threads: u32, live: u32) -> u32 {
        let phase = self.phase;
        self.arrived += threads;
        self.votes += wait.votes.count_ones();
        self.expected = wait.count;
        self.settle(live);
        phase
    }

    /// Begins a new phase if all expected threads have arrived. Returns `true` if it did.
    pub(crate) fn settle(&mut self, live: u32) -> bool {
        let expected = if self.expected == 0 {
            live
        } else {
            self.expected
        };
        if self.arrived == 0 || self.arrived < expected {
            return false;
        }
        self.results[(self.phase & 1) as usize] = Tally {
            votes: self.votes,
            threads: self.arrived,
        };
        self.phase = self.phase.wrapping_add(1);
        self.arrived = 0;
        self.votes = 0;
        self.expected = 0;
        true
    }

    /// Returns the number of threads that have arrived and that of those that the phase waits for,
    /// unless no thread has arrived.
    pub(crate) fn waiting(&self, live: u32) -> Option<(u32, u32)> {
        let expected = if self.expected == 0 {
            live
        } else {
            self.expected
        };
        (self.arrived != 0).then_some((self.arrived, expected))
    }

    /// Returns the result of a phase, or `None` if the phase has not completed.
    pub(crate) fn result(&self, phase: u32) -> Option<Tally> {
        (phase != self.phase).then(|| self.results[(phase & 1) as usize])
    }
}

impl Tally {
    /// Writes the result of a reduction to its destination.
    pub(crate) fn deliver(self, frame: &mut Frame, op: &Op, lanes: u32) {
        if op.e == Reduction::Count as u32 {
            frame.row_mut::<u32>(op.d).merge(&[self.votes; 32], lanes);
            return;
        }
        let is_true = if op.e == Reduction::All as u32 {
            self.votes == self.threads
        } else if op.e == Reduction::Any as u32 {
            self.votes != 0
        } else {
            return;
        };
        let value = if is_true { u32::MAX } else { 0 };
        frame.set_predicate(op.d, value, lanes);
    }
}

/// The number of named barriers of a block. Those of warpgroups follow.
pub(crate) const NAMED_BARRIERS: usize = 16;

/// The number of warpgroups in the largest block.
pub(crate) const MAX_WARPGROUPS: usize = 8;

/// An arrival at a barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wait {
    /// The barrier, 0 to 15.
    pub(crate) barrier: usize,
    /// The number of expected threads; 0 for all threads of the block.
    pub(crate) count: u32,
    /// The lanes with a true predicate, for reductions.
    pub(crate) votes: u32,
    /// `true` if the lanes continue immediately.
    pub(crate) arrive_only: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exited_threads_are_not_waited_for() {
        let mut barrier = Barrier::default();
        let phase = barrier.arrive(Wait::default(), 32, 64);
        assert_eq!(barrier.result(phase), None);
        barrier.settle(32);
        assert!(barrier.result(phase).is_some());
    }

    #[test]
    fn a_count_releases_before_all_threads_have_arrived() {
        let mut barrier = Barrier::default();
        let wait = Wait {
            count: 64,
            votes: 0b11,
            ..Wait::default()
        };
        let phase = barrier.arrive(wait, 32, 1024);
        assert_eq!(barrier.result(phase), None);
        assert_eq!(barrier.arrive(wait, 32, 1024), phase);
        let tally = barrier.result(phase).expect("the phase is over");
        assert_eq!((tally.votes, tally.threads), (4, 64));
    }
}
