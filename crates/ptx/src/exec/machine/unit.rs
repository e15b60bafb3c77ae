//! The context of a handler: the registers of one activation, and the memory and launch that it can
//! access.

use super::access_pattern_cache::AccessPatternCache;
use super::barrier::Wait;
use super::block_state::BlockState;
use super::launch::Prepared;
use super::objects::Objects;
use super::op::Control;
use super::warp_state::WarpState;
use crate::exec::check::report::Trap;
use crate::exec::check::watch::Watcher;
use crate::exec::frame::Frame;
use crate::exec::matrix::workspace::Matrices;
use crate::exec::memory::SegmentCache;

/// A fragment of a warp that executes an instruction.
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
    /// The worker's segment cache.
    pub(crate) cache: &'r mut SegmentCache,
    /// The worker's textures and surfaces.
    pub(crate) objects: &'r mut Objects,
    /// The worker's operands of the last product of matrices, if there was one.
    pub(crate) matrices: &'r mut Option<Box<Matrices>>,
    /// The observer of accesses to device memory.
    pub(crate) watcher: Option<&'r mut (dyn Watcher + 'r)>,
    /// The active lanes.
    pub(crate) active: u32,

    /// With `Control::Wait`: the barrier.
    pub(crate) wait: Wait,
    /// With `Control::Fault`: the cause.
    pub(crate) trap: Option<Trap>,
    /// The access patterns of address registers.
    pub(crate) patterns: &'r mut AccessPatternCache,
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
