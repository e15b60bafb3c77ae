//! `st.bulk`: zeros in shared memory.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::Op;
use crate::exec::ops::bulk_store::{STEP, run_store_bulk};
use crate::exec::space::Space;
use crate::syntax::{
    Instruction, Keyword, Modifier, Operand, ScalarType, Semantics, Space as State,
};

impl Lowerer<'_> {
    /// `st.bulk`.
    pub(super) fn store_bulk(&mut self, instruction: &Instruction) -> Lowered {
        let allowed = [
            Modifier::Keyword(Keyword::Bulk),
            Modifier::Semantics(Semantics::Weak),
            Modifier::Space(State::SharedCta),
        ];
        let [Operand::Address(address), size, Operand::Integer(value)] = &instruction.operands[..]
        else {
            return Err(Refusal::form(instruction));
        };
        let is_whole = !matches!(size, Operand::Integer(size) if size.bits % STEP != 0);
        if value.bits != 0
            || !is_whole
            || instruction
                .modifiers
                .iter()
                .any(|modifier| !allowed.contains(modifier))
        {
            return Err(Refusal::form(instruction));
        }
        let names_space = instruction.has(Modifier::Space(State::SharedCta));
        let a = self.address_row(*address)?;
        let b = self.source(size, ScalarType::U64)?;
        let space = if names_space {
            Space::Shared
        } else {
            Space::Generic
        };
        self.push(Op {
            a,
            b,
            space,
            ..Op::new(run_store_bulk)
        });
        Ok(())
    }
}
