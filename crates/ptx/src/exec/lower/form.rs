//! Instructions that have a definition.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::isa::Run;
use crate::syntax::{Instruction, ScalarType};

impl Lowerer<'_> {
    /// Lowers an instruction by the form of its definition.
    pub(super) fn by_form(&mut self, instruction: &Instruction) -> Lowered {
        let form = instruction
            .form()
            .ok_or_else(|| Refusal::form(instruction))?;
        let types: Vec<ScalarType> = instruction.types().collect();
        let handler = match form.run {
            Run::Handler(handler) => Some(handler()),
            Run::Typed(handler) => types.first().copied().and_then(handler),
            Run::Predicates(logic) => return self.predicate_logic(instruction, logic),
            Run::TestedTable => return self.test_table_logic(instruction),
        };
        let handler = handler.ok_or_else(|| Refusal::form(instruction))?;
        let mut operands = instruction.operands.iter().zip(form.operand_types(&types));
        let Some((result, result_type)) = operands.next() else {
            return Err(Refusal::form(instruction));
        };
        let mut rows: Vec<u32> = operands
            .map(|(source, scalar)| self.source(source, scalar))
            .collect::<Lowered<_>>()?;
        rows.resize(4, 0);
        let d = self.destination(result, result_type)?;
        self.emit(handler, d, [rows[0], rows[1], rows[2]]).e = rows[3];
        Ok(())
    }
}
