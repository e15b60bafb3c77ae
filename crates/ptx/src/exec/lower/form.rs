//! Instructions that have a definition.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::{Handler, Role};
use crate::exec::ops::handler::NO_REGISTER;
use crate::exec::ops::handler::moves::widen_half;
use crate::exec::values::exact::Rounding;
use crate::exec::values::float::Mode;
use crate::isa::{OperandKind, Run};
use crate::syntax::{
    Instruction, Keyword, Modifier, Operand, ParsedForm, Rounding as Written, ScalarType,
};

impl Lowerer<'_> {
    /// Lowers an instruction by the form of its definition.
    pub(super) fn by_form(&mut self, instruction: &Instruction) -> Lowered {
        let parsed = instruction
            .form()
            .ok_or_else(|| Refusal::form(instruction))?;
        match parsed.form.run {
            Run::Handler(handler) => self.computation(instruction, parsed, handler()),
            Run::Typed(handler) => {
                let handler = instruction.types().next().and_then(handler);
                let handler = handler.ok_or_else(|| Refusal::form(instruction))?;
                self.computation(instruction, parsed, handler)
            }
            Run::Extended(extended) => self.extended(instruction, extended),
            Run::Test(handler) => self.test(instruction, handler()),
            Run::Predicates(logic) => self.predicate_logic(instruction, logic),
            Run::TestedTable => self.test_table_logic(instruction),
        }
    }

    /// Lowers an instruction whose handler has the operands of the form.
    fn computation(
        &mut self,
        instruction: &Instruction,
        parsed: &ParsedForm,
        run: Handler,
    ) -> Lowered {
        let (Some((first, second)), Some((result, sources)), Some((result_kind, kinds))) = (
            instruction.pair_of_types(),
            instruction.operands.split_first(),
            parsed.operands.split_first(),
        ) else {
            return Err(Refusal::form(instruction));
        };
        let mut rows = Vec::with_capacity(4);
        for (source, kind) in sources.iter().zip(kinds) {
            let scalar = kind.scalar(first, second);
            rows.push(match kind {
                OperandKind::Narrow => self.widened(instruction, source, scalar)?,
                _ => self.source(source, scalar)?,
            });
        }
        let form = parsed.form;
        if form.has_mode() {
            let mode = mode(instruction).ok_or_else(|| Refusal::form(instruction))?;
            rows.push(self.word(mode.bits()));
        }
        rows.resize(4, 0);
        let d = self.destination(result, result_kind.scalar(first, second))?;
        let op = self.emit(run, d, [rows[0], rows[1], rows[2]]);
        op.e = rows[3];
        if let Some(step) = form.step {
            op.role = Role::Step(step);
        }
        Ok(())
    }

    /// Returns a row with the value of a narrower source, converted to f32.
    fn widened(
        &mut self,
        instruction: &Instruction,
        source: &Operand,
        narrow: ScalarType,
    ) -> Lowered<u32> {
        let a = self.source(source, narrow)?;
        let row = self.new_word();
        let run = widen_half(narrow).ok_or_else(|| Refusal::scalar(instruction, narrow))?;
        self.emit(run, row, [a, 0, 0]);
        Ok(row)
    }

    /// Lowers a test of one value, whose handler compares it with itself.
    fn test(&mut self, instruction: &Instruction, run: Handler) -> Lowered {
        let ([Operand::Register(destination), source], Some(scalar)) =
            (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let a = self.source(source, scalar)?;
        let d = self.predicate_register(*destination)?;
        self.emit(run, d, [a, a, 0]).e = NO_REGISTER;
        Ok(())
    }
}

/// Returns the rounding, flushing and saturation of an instruction.
fn mode(instruction: &Instruction) -> Option<Mode> {
    let rounding = match instruction.rounding() {
        None | Some(Written::NearestEven) => Rounding::Nearest,
        Some(Written::Zero) => Rounding::Zero,
        Some(Written::Down) => Rounding::Down,
        Some(Written::Up) => Rounding::Up,
        Some(_) => return None,
    };
    let flush = instruction.has(Modifier::FlushToZero);
    let saturate = instruction.has(Modifier::Saturate);
    let mut mode = Mode::new(rounding, flush, saturate);
    if instruction.has_keyword(Keyword::Relu) {
        mode = mode.rectified();
    }
    if instruction.has_keyword(Keyword::Oob) {
        mode = mode.with_zeroed_out_of_bounds();
    }
    Some(mode)
}
