//! Multicast memory (`multimem`).

use super::address::scalar;
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::ops::multicast::{BULK_ALIGNMENT, run_multicast};
use crate::syntax::{Instruction, Keyword, Modifier, Operand};

impl Lowerer<'_> {
    /// `multimem`: no address is one of a multicast object, so the other operands have no effect.
    pub(super) fn multicast(&mut self, instruction: &Instruction) -> Lowered {
        let loads = instruction.has_keyword(Keyword::LdReduce);
        let Some(Operand::Address(address)) = instruction.operands.get(usize::from(loads)) else {
            return Err(Refusal::form(instruction));
        };
        let bytes = if instruction.has_keyword(Keyword::Cp) {
            BULK_ALIGNMENT
        } else {
            let count = instruction
                .modifiers
                .iter()
                .find_map(|modifier| match modifier {
                    Modifier::Vector(count) => Some(u64::from(*count)),
                    _ => None,
                });
            scalar(instruction)?.bytes() * count.unwrap_or(1)
        };
        let target = self.target(instruction, *address)?;
        let run = if loads {
            run_multicast::<false>
        } else {
            run_multicast::<true>
        };
        self.access(run, target, 0, bytes);
        Ok(())
    }
}
