//! A cache of the access patterns of address registers.
//!
//! Neighboring accesses mostly use the same register with different offsets. The first access
//! detects the pattern and finds the segment; the following ones only check that their own offset
//! is in bounds. `lower` determines which accesses share a slot.

use super::op::{ACCESS_PATTERN_SLOTS, Op, PatternSlot};
use crate::exec::memory::access_pattern::AccessPattern;
use crate::exec::memory::{AccessMode, HostBytes, Segment, StridedMemory};
use crate::exec::values::lane::FULL;

/// The access patterns of address registers that were detected since the fragment began to execute,
/// without the offsets of instructions.
#[derive(Debug, Default)]
pub(crate) struct AccessPatternCache {
    memory: [StridedMemory; ACCESS_PATTERN_SLOTS],
    patterns: [Option<AccessPattern>; ACCESS_PATTERN_SLOTS],
    /// A bit for each slot that is filled.
    filled: u8,
    /// A bit for each slot whose pattern is aligned and has memory.
    resolved: u8,
}

impl AccessPatternCache {
    /// Discards all patterns, and returns the cache.
    pub(crate) fn cleared(&mut self) -> &mut Self {
        self.filled = 0;
        self.resolved = 0;
        self
    }

    /// Returns the pattern of an instruction's address register: `None` if it is not cached,
    /// `Some(None)` if the addresses have none.
    #[inline(always)]
    pub(crate) fn get(&self, op: &Op) -> Option<Option<AccessPattern>> {
        match op.pattern {
            PatternSlot::Reuse(slot) if self.filled >> (slot & 7) & 1 == 1 => {
                self.patterns.get(usize::from(slot)).copied()
            }
            _ => None,
        }
    }

    /// Caches the pattern of an address register, or that it has none.
    #[inline(always)]
    pub(crate) fn insert(&mut self, slot: u8, pattern: Option<AccessPattern>) {
        self.patterns[usize::from(slot)] = pattern;
        self.filled |= 1 << slot;
        self.resolved &= !(1 << slot);
    }

    /// Caches the memory of a cached pattern, in the segment that an instruction has found. Does
    /// nothing if the addresses are not aligned without the instruction's offset.
    #[inline(always)]
    pub(crate) fn insert_memory(&mut self, op: &Op, pattern: AccessPattern, segment: &Segment) {
        let (PatternSlot::Fill(slot) | PatternSlot::Reuse(slot)) = op.pattern else {
            return;
        };
        let align_mask = u64::from(op.align_mask);
        let is_missing = self.filled & !self.resolved & 1 << (slot & 7) != 0;
        if !is_missing {
            return;
        }
        let [low, high] = pattern.starts;
        if (low | high) & align_mask != 0 {
            return;
        }
        if let Some(memory) = StridedMemory::new(segment, pattern, align_mask + 1) {
            self.memory[usize::from(slot)] = memory;
            self.resolved |= 1 << slot;
        }
    }

    /// Caches an aligned pattern with its memory.
    #[inline(always)]
    pub(crate) fn insert_resolved(
        &mut self,
        slot: u8,
        pattern: AccessPattern,
        memory: &StridedMemory,
    ) {
        self.insert(slot, Some(pattern));
        self.memory[usize::from(slot)] = *memory;
        self.resolved |= 1 << slot;
    }

    /// Returns the stride of an instruction's access pattern and the host memory of each half warp,
    /// if they are cached, all lanes are active, and the accesses are aligned and in bounds. The
    /// instruction's offset must be aligned.
    #[inline(always)]
    pub(crate) fn memory(
        &self,
        op: &Op,
        active: u32,
        mode: AccessMode,
    ) -> Option<(u64, [HostBytes; 2])> {
        let PatternSlot::Reuse(slot) = op.pattern else {
            return None;
        };
        if active != FULL || self.resolved >> (slot & 7) & 1 == 0 {
            return None;
        }
        let memory = &self.memory[usize::from(slot) % ACCESS_PATTERN_SLOTS];
        // The pattern is that of the vector.
        let element = op.element_offset();
        let halves = memory.at(op.imm.wrapping_sub(element), element, mode)?;
        Some((memory.stride, halves))
    }
}
