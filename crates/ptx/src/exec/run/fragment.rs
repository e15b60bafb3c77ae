//! Fragments of a warp: lanes at the same instruction, and the reasons why they stop there.

use super::warp::Warp;
use crate::exec::check::report::Trap;
use crate::exec::machine::barrier::Wait;
use crate::exec::machine::op::Control;

/// Lanes at the same instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment {
    pub(crate) pc: u32,
    pub(crate) mask: u32,
    pub(crate) frame: u32,
    pub(crate) depth: u32,
    /// Backward branches since the fragment's turn began.
    pub(crate) turns: u32,
    pub(crate) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Runnable.
    Ready,
    /// Runnable, but its turn is over.
    Yielded,
    /// Waits until more lanes arrive at this instruction, or until some of the lanes that were live
    /// have ended.
    Converging { live: u32 },
    /// Waits for lanes at any instruction that waits for the same lanes.
    Gathering { members: u32 },
    /// Waits until a phase of a barrier completes.
    Barrier { index: usize, phase: u32 },
    /// Waits until a phase of the cluster's barrier completes.
    Cluster { phase: u32 },
    /// Waits until tensor memory has been deallocated more often than this.
    TensorMemory { deallocations: u32 },
}

impl Fragment {
    /// Returns `true` if the lanes of both fragments are at the same instruction and may continue
    /// together.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.pc == other.pc
            && self.frame == other.frame
            && !self.state.is_at_barrier()
            && !other.state.is_at_barrier()
    }
}

impl State {
    fn is_at_barrier(self) -> bool {
        matches!(
            self,
            Self::Gathering { .. } | Self::Barrier { .. } | Self::Cluster { .. }
        )
    }
}

/// The end of a path, and the effect of its last instruction on the warp.
pub(crate) struct Stop {
    pub(crate) outcome: Outcome,
    pub(crate) pc: u32,
    /// Backward branches since the fragment's turn began.
    pub(crate) turns: u32,
    pub(crate) wait: Wait,
    pub(crate) trap: Option<Trap>,
}

/// The reason why a path ended.
pub(crate) enum Outcome {
    /// Another fragment may be at this instruction.
    Met,
    /// A backward branch was taken.
    Back,
    /// Only these lanes execute the instruction; the others skip it first.
    Split(u32),
    /// The instruction's control effect, with its active lanes.
    Control(Control, u32),
}

impl Warp {
    /// Returns `true` if the lanes wait for other blocks of the cluster.
    pub(crate) fn waits_for_cluster(&self) -> bool {
        self.fragments
            .iter()
            .any(|fragment| matches!(fragment.state, State::Cluster { .. }))
    }

    /// Advances a fragment past its instruction.
    pub(crate) fn skip(&mut self, index: usize) {
        self.fragments[index].pc += 1;
    }
}
