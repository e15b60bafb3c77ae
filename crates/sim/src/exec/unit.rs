//! What a handler works on: the registers of one activation, and everything it can reach.

use super::block::BlockState;
use super::frame::Frame;
use super::grid::Prepared;
use super::kept_runs::KeptRuns;
use super::memory::SegmentCache;
use super::objects::Objects;
use super::op::Control;
use super::report::Trap;
use super::warp::WarpState;
use super::watch::Watcher;

/// One fragment of a warp, about to execute.
#[derive(Debug)]
pub(crate) struct Unit<'r> {
    /// Registers.
    pub(crate) frame: &'r mut Frame,
    /// The warp's thread indices and local memory.
    pub(crate) warp: &'r mut WarpState,
    /// The block's shared memory and barriers.
    pub(crate) block: &'r mut BlockState,
    /// The launch, with addresses resolved.
    pub(crate) launch: &'r Prepared<'r>,
    /// The worker's memory of segments.
    pub(crate) cache: &'r mut SegmentCache,
    /// The worker's textures and surfaces.
    pub(crate) objects: &'r mut Objects,
    /// Who hears of accesses to device memory.
    pub(crate) watcher: Option<&'r mut (dyn Watcher + 'r)>,
    /// Lanes that execute.
    pub(crate) active: u32,
    /// With `Control::Part`: the lanes that go on; with `Control::WaitForCluster`: the phase.
    pub(crate) needed: u32,
    /// With `Control::Wait`: the barrier.
    pub(crate) wait: Wait,
    /// With `Control::Fault`: the cause.
    pub(crate) trap: Option<Trap>,
    /// The runs of address registers, as found by the last instructions that used them.
    pub(crate) runs: &'r mut KeptRuns,
}

/// An arrival at a barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wait {
    /// The barrier, 0 to 15.
    pub(crate) barrier: usize,
    /// Threads expected; 0 for every thread of the block.
    pub(crate) count: u32,
    /// Lanes that bring a true predicate, for reductions.
    pub(crate) votes: u32,
    /// `true` if the lanes go on at once.
    pub(crate) arrive_only: bool,
}

impl Unit<'_> {
    /// Records the cause and stops the launch.
    #[cold]
    pub(crate) fn fault(&mut self, trap: Trap) -> Control {
        self.trap = Some(trap);
        Control::Fault
    }

    /// Returns the lowest active lane.
    pub(crate) fn leader(&self) -> usize {
        self.active.trailing_zeros() as usize & 31
    }
}
