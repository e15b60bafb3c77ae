//! The lowering of an instruction, driven by the table of instructions.

use super::error::Lowered;
use super::function::Lowerer;
use crate::exec::space::Space;
use crate::syntax::{Effect, Instruction, Keyword, Modifier, Opcode, Scope, for_each_opcode};

impl Lowerer<'_> {
    /// Lowers one instruction under its guard.
    pub(super) fn instruction(&mut self, instruction: &Instruction) -> Lowered {
        match instruction.opcode.effect() {
            Effect::None => {}
            // The barriers of a block record their effect themselves when they complete, and
            // `barrier.cluster` is handled in its own lowering.
            Effect::Fence => self.order(),
            Effect::WarpSync => self.join_warp(),
        }
        self.by_table(instruction)
    }

    /// `st`
    fn any_store(&mut self, instruction: &Instruction) -> Lowered {
        if instruction.has_keyword(Keyword::Async) {
            self.store_asynchronously(instruction)
        } else if instruction.has_keyword(Keyword::Bulk) {
            self.store_bulk(instruction)
        } else {
            self.store(instruction)
        }
    }

    /// `red`
    fn any_reduction(&mut self, instruction: &Instruction) -> Lowered {
        if instruction.has_keyword(Keyword::Async) {
            self.store_asynchronously(instruction)
        } else {
            self.atomic(instruction, false)
        }
    }

    /// `atom`
    fn returning_atomic(&mut self, instruction: &Instruction) -> Lowered {
        self.atomic(instruction, true)
    }

    /// `wmma`
    fn tile(&mut self, instruction: &Instruction) -> Lowered {
        if instruction.has_keyword(Keyword::Mma) {
            self.multiply_matrices(instruction)
        } else {
            self.move_matrix(instruction)
        }
    }

    /// `membar`, `fence`
    fn memory_fence(&mut self, instruction: &Instruction) -> Lowered {
        self.fence();
        if !instruction.has(Modifier::Scope(Scope::Cta))
            && !instruction.has(Modifier::Scope(Scope::Cluster))
        {
            self.exchange(Space::Global);
        }
        Ok(())
    }

    /// Lowers a hint, which affects no result.
    fn hint(&mut self, _instruction: &Instruction) -> Lowered {
        Ok(())
    }
}

macro_rules! define_lower {
    ($($variant:ident $text:literal $check:ident $lower:ident $effect:ident $flow:ident $($requirement:literal)*;)*) => {
        impl Lowerer<'_> {
            /// Lowers an instruction with the method from the table of instructions.
            fn by_table(&mut self, instruction: &Instruction) -> Lowered {
                match instruction.opcode {
                    $(Opcode::$variant => self.$lower(instruction),)*
                    Opcode::Defined(_) => self.by_form(instruction),
                }
            }
        }
    };
}

for_each_opcode!(define_lower);
