//! The runs of address registers, kept from one access to the next.
//!
//! Neighboring accesses mostly use the same register with different offsets. The first access finds the runs and the segment; the following
//! ones only check that their own offset is in bounds. `lower` determines which accesses may do so.

use super::lane::FULL;
use super::memory::{HostBytes, RunPlaces, Segment};
use super::op::{KEPT_RUNS, Op, RunsSlot};
use super::runs::Runs;

/// The runs of address registers that were found since the fragment began to execute, without the offsets of instructions.
#[derive(Debug, Default)]
pub(crate) struct KeptRuns {
    places: [RunPlaces; KEPT_RUNS],
    runs: [Option<Runs>; KEPT_RUNS],
    /// A bit for each slot whose runs were searched for.
    known: u8,
    /// A bit for each slot whose runs are aligned and have places.
    placed: u8,
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
            RunsSlot::Reuse(slot) if self.known >> (slot & 7) & 1 == 1 => {
                self.runs.get(usize::from(slot)).copied()
            }
            _ => None,
        }
    }

    /// Keeps the runs of an address register.
    #[inline(always)]
    pub(crate) fn keep(&mut self, slot: u8, runs: Option<Runs>) {
        self.runs[usize::from(slot)] = runs;
        self.known |= 1 << slot;
        self.placed &= !(1 << slot);
    }

    /// Keeps the places of kept runs, in the segment that an instruction has found. Runs whose addresses are not aligned without the
    /// instruction's offset are not reused.
    #[inline(always)]
    pub(crate) fn keep_segment(&mut self, op: &Op, runs: Runs, segment: &Segment) {
        let (RunsSlot::Keep(slot) | RunsSlot::Reuse(slot)) = op.runs else {
            return;
        };
        let (Runs { starts, step }, align_mask) = (runs, op.align_mask);
        let is_missing = self.known & !self.placed & 1 << (slot & 7) != 0;
        if !is_missing {
            return;
        }
        if (starts[0] | starts[1]) & u64::from(align_mask) != 0 {
            return;
        }
        if let Some(places) = RunPlaces::new(segment, starts, step, u64::from(align_mask) + 1) {
            self.places[usize::from(slot)] = places;
            self.placed |= 1 << slot;
        }
    }

    /// Keeps aligned runs with their places.
    #[inline(always)]
    pub(crate) fn keep_places(&mut self, slot: u8, runs: Runs, places: &RunPlaces) {
        self.keep(slot, Some(runs));
        self.places[usize::from(slot)] = *places;
        self.placed |= 1 << slot;
    }

    /// Returns the step of an instruction's runs and the host memory of each, if they are kept, all lanes are active, and the runs are
    /// aligned and in bounds. The instruction's offset must be aligned.
    #[inline(always)]
    pub(crate) fn places(
        &self,
        op: &Op,
        active: u32,
        write: bool,
    ) -> Option<(u64, [HostBytes; 2])> {
        let RunsSlot::Reuse(slot) = op.runs else {
            return None;
        };
        if active != FULL || self.placed >> (slot & 7) & 1 == 0 {
            return None;
        }
        let places = &self.places[usize::from(slot) % KEPT_RUNS];
        // The runs are those of the vector; `op.e` is the offset of the element in it.
        let element = u64::from(op.e);
        Some((
            places.step,
            places.at(op.imm.wrapping_sub(element), element, write)?,
        ))
    }
}
