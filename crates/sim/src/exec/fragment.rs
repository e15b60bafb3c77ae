//! Fragments of a warp: lanes that are at the same place, and why they stop there.

use super::op::Control;
use super::report::Trap;
use super::unit::Wait;
use super::warp::Warp;

/// Lanes that are at the same place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    pub(crate) pc: u32,
    pub(crate) mask: u32,
    pub(crate) frame: u32,
    pub(crate) depth: u32,
    /// Backward branches taken since it last rested.
    pub(crate) turns: u32,
    pub(crate) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Can run.
    Ready,
    /// Can run, but has had its turn.
    Rested,
    /// Waits for lanes to arrive at this instruction, or for some of those that were live to end.
    Converging { live: u32 },
    /// Waits for lanes to arrive at any instruction that waits for the same lanes.
    Gathering { needed: u32 },
    /// Waits at a barrier until its phase is over.
    Barrier { index: usize, phase: u32 },
    /// Waits at the barrier of the cluster until its phase is over.
    Cluster { phase: u32 },
}

impl Fragment {
    /// Returns `true` if the lanes of both are at the same place and may go on together.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let at_barrier =
            |state| matches!(state, State::Gathering { .. } | State::Barrier { .. } | State::Cluster { .. });
        self.pc == other.pc && self.frame == other.frame && !at_barrier(self.state) && !at_barrier(other.state)
    }
}

/// The place where a path ended, and what its last instruction left for the warp.
pub(crate) struct Stop {
    pub(crate) outcome: Outcome,
    pub(crate) pc: u32,
    /// Backward branches since the fragment last rested.
    pub(crate) turns: u32,
    pub(crate) needed: u32,
    pub(crate) wait: Wait,
    pub(crate) trap: Option<Trap>,
}

/// Why a path ended.
pub(crate) enum Outcome {
    /// Another fragment may be at this instruction.
    Met,
    /// A backward branch was taken.
    Back,
    /// Only these lanes execute the instruction; the rest go past it first.
    Split(u32),
    /// The instruction asks for more than the next one; with its active lanes.
    Control(Control, u32),
}

impl Warp {
    /// Returns `true` if lanes wait for other blocks of the cluster.
    pub(crate) fn waits_for_cluster(&self) -> bool {
        self.fragments.iter().any(|fragment| matches!(fragment.state, State::Cluster { .. }))
    }

    /// Has a fragment go on behind its instruction.
    pub(crate) fn skip(&mut self, index: usize) {
        self.fragments[index].pc += 1;
    }
}
