//! Reuse of the access pattern of an address register by later accesses.
//!
//! Accesses to neighboring elements mostly use the same address register with different offsets.
//! The first access computes the pattern. Later ones reuse them if no instruction in between writes
//! to the register and no branch target lies in between.

use super::address::Target;
use super::function::{Lowerer, Slot};
use super::registers::each_result;
use crate::exec::machine::op::{ACCESS_PATTERN_SLOTS, PatternSlot};
use crate::exec::space::Space;
use crate::syntax::Instruction;

/// The address registers whose access patterns are cached, by slot.
#[derive(Debug, Default)]
pub(super) struct PatternSlots {
    registers: [Option<CachedPattern>; ACCESS_PATTERN_SLOTS],
    /// For each slot, `true` if a load or a store has resolved the memory of the pattern.
    is_resolved: [bool; ACCESS_PATTERN_SLOTS],
    /// The slot that is filled next.
    next: usize,
}

/// An address register with the space and the alignment of its accesses. The stride of the pattern
/// is 0 or that alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CachedPattern {
    register: Slot,
    space: Space,
    align: u64,
}

impl CachedPattern {
    /// Returns the register of a target, or `None` if accesses may be to local memory, which has no
    /// patterns.
    fn new(target: Target, align: u64) -> Option<Self> {
        let register = if target.narrow {
            Slot::Word(target.row)
        } else {
            Slot::Double(target.row)
        };
        let is_for_warps = matches!(target.space, Space::Global | Space::Shared);
        is_for_warps.then_some(Self {
            register,
            space: target.space,
            align,
        })
    }
}

impl PatternSlots {
    /// Returns the slot that holds the pattern of a target.
    pub(super) fn reuse(&self, target: Target, align: u64) -> PatternSlot {
        let pattern = CachedPattern::new(target, align);
        let slot = self
            .registers
            .iter()
            .position(|cached| cached.is_some() && *cached == pattern);
        slot.map_or(PatternSlot::None, |slot| PatternSlot::Reuse(slot as u8))
    }

    /// Returns the slot that an access fills with the pattern of its target.
    pub(super) fn fill(&mut self, target: Target, align: u64) -> PatternSlot {
        let Some(pattern) = CachedPattern::new(target, align) else {
            return PatternSlot::None;
        };
        let slot = self.next;
        self.registers[slot] = Some(pattern);
        self.is_resolved[slot] = false;
        self.next = (slot + 1) % ACCESS_PATTERN_SLOTS;
        PatternSlot::Fill(slot as u8)
    }

    /// Records that a load or a store uses a slot. Returns `true` if an earlier one has resolved
    /// the memory of the pattern.
    pub(super) fn mark_resolved(&mut self, slot: PatternSlot) -> bool {
        match slot {
            PatternSlot::None => false,
            PatternSlot::Fill(slot) | PatternSlot::Reuse(slot) => {
                std::mem::replace(&mut self.is_resolved[usize::from(slot)], true)
            }
        }
    }

    /// Begins an instruction. Discards all patterns if a branch may lead to the instruction.
    pub(super) fn enter(&mut self, is_entry: bool) {
        if is_entry {
            self.discard_all();
        }
    }

    fn discard_all(&mut self) {
        self.registers = [None; ACCESS_PATTERN_SLOTS];
    }

    fn discard(&mut self, register: Slot) {
        for cached in &mut self.registers {
            *cached = cached.filter(|pattern| pattern.register != register);
        }
    }
}

impl Lowerer<'_> {
    /// Removes slots whose pattern no later access reuses.
    pub(super) fn drop_unused_patterns(&mut self) {
        let mut is_used = [false; ACCESS_PATTERN_SLOTS];
        for op in self.out.code.iter_mut().rev() {
            match op.pattern {
                PatternSlot::Reuse(slot) => is_used[usize::from(slot)] = true,
                PatternSlot::Fill(slot) if !std::mem::take(&mut is_used[usize::from(slot)]) => {
                    op.pattern = PatternSlot::None;
                }
                PatternSlot::Fill(_) | PatternSlot::None => {}
            }
        }
    }

    /// Discards the patterns of registers that an instruction may have written.
    pub(super) fn discard_result_patterns(&mut self, instruction: &Instruction) {
        each_result(instruction, &mut |register| {
            if self.function.registers[register.0 as usize].vector > 1 {
                self.pattern_slots.discard_all();
            } else {
                self.pattern_slots.discard(self.slot(register));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{Checking, lower_with_checks};
    use crate::syntax;

    /// Returns the slots of the accesses to memory of a kernel.
    fn body_slots(body: &str) -> Vec<PatternSlot> {
        body_slots_with(Checking::nothing(), body)
    }

    /// The same with checks.
    fn body_slots_with(checking: Checking, body: &str) -> Vec<PatternSlot> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry main(.param .u64 p)\n{{\n
             .reg .pred %p;\n.reg .b32 %r<8>;\n.reg .f32 %f<8>;\n.reg .b64 %d<8>;\n{body}\nret;\n}}"
        );
        let module = syntax::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let program =
            lower_with_checks(&module, checking).unwrap_or_else(|error| panic!("{error}"));
        let code = &program.functions[0].code;
        code.iter()
            .filter(|op| op.align_mask != 0)
            .map(|op| op.pattern)
            .collect()
    }

    #[test]
    fn accesses_by_one_register_reuse_its_pattern() {
        use PatternSlot::{Fill, None, Reuse};
        let body = "ld.shared.f32 %f0, [%d1]; ld.shared.f32 %f1, [%d2+4]; ld.shared.f32 %f2, [%d1+8];
            fma.rn.f32 %f3, %f0, %f1, %f2; st.shared.f32 [%d2], %f3; setp.eq.f32 %p, %f3, %f0; ld.shared.f32 %f4, [%d1];";
        assert_eq!(
            body_slots(body),
            [Fill(0), Fill(1), Reuse(0), Reuse(1), Reuse(0)]
        );
        assert_eq!(
            body_slots("ld.f32 %f0, [%d1]; ld.f32 %f1, [%d1];"),
            [None, None],
            "they may be local"
        );
        assert_eq!(
            body_slots("ld.global.v2.f32 {%f0, %f1}, [%d1];"),
            [Fill(0), Reuse(0)]
        );
    }

    #[test]
    fn race_checks_keep_patterns() {
        use PatternSlot::{Fill, Reuse};
        let all = Checking::nothing()
            .with_races(true)
            .with_uninitialized(true);
        let slots = body_slots_with(all, "ld.shared.f32 %f0, [%d1]; st.global.f32 [%d2], %f0;");
        assert_eq!(
            slots,
            [
                Fill(0),
                Reuse(0),
                Reuse(0),
                Fill(1),
                Reuse(1),
                Reuse(1),
                Reuse(1)
            ]
        );
    }

    #[test]
    fn written_registers_discard_patterns() {
        use PatternSlot::{Fill, None, Reuse};
        // Runs that no other access reuses are not kept.
        for change in [
            "add.u64 %d1, %d1, 4;",
            "ld.global.u64 %d1, [%d1];",
            "L: setp.eq.u32 %p, %r0, 1; @%p bra L;",
            "@%p mov.u64 %d1, 0;",
        ] {
            let body = format!("ld.global.u32 %r0, [%d1]; {change} ld.global.u32 %r1, [%d1];");
            assert!(
                matches!(body_slots(&body)[..], [None | Fill(0), .., None]),
                "{change}"
            );
        }
        assert_eq!(
            body_slots("@%p ld.global.u32 %r0, [%d1]; ld.global.u32 %r1, [%d1];"),
            [None, None]
        );
        assert_eq!(
            body_slots("ld.global.u32 %r0, [%d1]; @%p ld.global.u32 %r1, [%d1];"),
            [Fill(0), Reuse(0)]
        );
        assert_eq!(
            body_slots("ld.global.u32 %r0, [%d1]; ld.global.u16 %r1, [%d1];"),
            [None, None],
            "other steps"
        );
    }
}
