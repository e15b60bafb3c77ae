//! The runs of address registers, kept from one access to the next.
//!
//! Neighboring accesses mostly use the same register with different offsets. The first access finds the runs and the segment; the following
//! ones only check that their own offset is in bounds. `lower` determines which accesses may do so.

use super::lane::{FULL, HALF};
use super::memory::{HostBytes, Segment, Word};
use super::op::{KEPT_RUNS, Op, RunsSlot};
use super::runs::Runs;

/// The runs of address registers that were found since the fragment began to execute.
#[derive(Debug, Default)]
pub(crate) struct KeptRuns {
    kept: [Kept; KEPT_RUNS],
    /// A bit for each slot whose runs were searched for.
    known: u8,
    /// A bit for each slot whose runs are aligned and begin in a segment.
    placed: u8,
}

/// The runs of a register, without the offsets of instructions.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    runs: Option<Runs>,
    step: u64,
    /// The segment of each half, with a base such that an instruction's offset is an address in it.
    halves: [Segment; 2],
}

impl KeptRuns {
    /// Forgets all runs, and returns the storage.
    pub(crate) fn restart(&mut self) -> &mut Self {
        (self.known, self.placed) = (0, 0);
        self
    }

    /// Returns the runs of an instruction's address register: `None` if they were not searched for, `Some(None)` if there are none.
    #[inline(always)]
    pub(crate) fn of(&self, op: &Op) -> Option<Option<Runs>> {
        match op.runs {
            RunsSlot::Reuse(slot) if self.known >> (slot & 7) & 1 == 1 => Some(self.kept.get(usize::from(slot))?.runs),
            _ => None,
        }
    }

    /// Keeps the runs of an address register.
    #[inline(always)]
    pub(crate) fn keep(&mut self, slot: u8, runs: Option<Runs>) {
        self.kept[usize::from(slot)].runs = runs;
        self.known |= 1 << slot;
        self.placed &= !(1 << slot);
    }

    /// Keeps the segment as well, in which the instruction that keeps the runs has found its place. Runs that are not aligned without an
    /// offset are not reused.
    #[inline(always)]
    pub(crate) fn keep_segment(&mut self, slot: u8, runs: Runs, align_mask: u8, segment: &Segment) {
        if (runs.starts[0] | runs.starts[1]) & u64::from(align_mask) != 0 {
            return;
        }
        let kept = &mut self.kept[usize::from(slot)];
        kept.step = runs.step;
        kept.halves = runs.starts.map(|start| Segment { base: segment.base.wrapping_sub(start), ..*segment });
        self.placed |= 1 << slot;
    }

    /// Returns the step of an instruction's runs and the host memory of each, if they are kept, all lanes are active, and the runs are
    /// aligned and in bounds.
    #[inline(always)]
    pub(crate) fn places<T: Word>(&self, op: &Op, active: u32, write: bool) -> Option<(u64, [HostBytes; 2])> {
        let RunsSlot::Reuse(slot) = op.runs else { return None };
        if active != FULL || self.placed >> (slot & 7) & 1 == 0 {
            return None;
        }
        let Kept { step, halves: [low, high], .. } = self.kept.get(usize::from(slot))?;
        // An element of a vector is where the vector is aligned, plus its offset in the vector.
        let misaligned = op.imm.wrapping_sub(u64::from(op.e)) & u64::from(op.align_mask) | op.imm & (T::SIZE - 1);
        if misaligned != 0 || write && !low.writable {
            return None;
        }
        let length = (HALF as u64 - 1) * step + T::SIZE;
        Some((*step, [low.place(op.imm, length)?, high.place(op.imm, length)?]))
    }
}
