//! Floating-point arithmetic.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::Role;
use crate::exec::ops::handler::float::{float, step};
use crate::exec::ops::handler::moves::widen_half;
use crate::syntax::{Instruction, Opcode, Operand, ScalarType};

impl Lowerer<'_> {
    /// Lowers an instruction on floating-point numbers.
    pub(super) fn float(&mut self, instruction: &Instruction) -> Lowered {
        let Some(scalar) = instruction.types().next() else {
            return Err(Refusal::form(instruction));
        };
        let (run, mode) = float(instruction, scalar).ok_or_else(|| refuse(instruction, scalar))?;
        let [destination, sources @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let narrow = instruction
            .types()
            .nth(1)
            .filter(|narrow| *narrow != scalar);
        let mut rows = Vec::new();
        for (index, source) in sources.iter().enumerate() {
            rows.push(match (source, narrow) {
                // Immediates of f16 are bits.
                (Operand::Double(_), _) if scalar.bits() == 16 => {
                    return Err(Refusal::operand("a register or the bits of an f16"));
                }
                // In mixed precision, all sources but the last are narrow.
                (other, Some(narrow)) if index + 1 < sources.len() => {
                    self.widened(instruction, other, narrow)?
                }
                (other, _) => self.source(other, scalar)?,
            });
        }
        if let Some(mode) = mode {
            rows.push(self.word(mode.bits()));
        }
        rows.resize(4, 0);
        let d = self.destination(destination, scalar)?;
        let op = self.emit(run, d, [rows[0], rows[1], rows[2]]);
        op.e = rows[3];
        if let Some(operation) = step(instruction, scalar) {
            op.role = Role::Step(operation);
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
}

fn refuse(instruction: &Instruction, scalar: ScalarType) -> Refusal {
    use Opcode as O;
    let is_supported = matches!(
        instruction.opcode,
        O::Add
            | O::Sub
            | O::Mul
            | O::Mad
            | O::Fma
            | O::Div
            | O::Min
            | O::Max
            | O::Abs
            | O::Neg
            | O::Rcp
            | O::Sqrt
            | O::Rsqrt
            | O::Ex2
            | O::Lg2
            | O::Sin
            | O::Cos
            | O::Tanh
            | O::Copysign
    );
    if is_supported {
        Refusal::scalar(instruction, scalar)
    } else {
        Refusal::instruction(instruction)
    }
}
