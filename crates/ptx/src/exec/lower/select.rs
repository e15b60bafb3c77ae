//! Comparisons whose results are predicates, and operations on predicates.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use super::set::{ComparisonHandler, comparison, is_packed};
use crate::exec::machine::op::{Handler, NO_REGISTER};
use crate::exec::ops::handler::Combine;
use crate::exec::ops::logic::run_predicate;
use crate::exec::ops::moves::run_predicate_copy;
use crate::isa::PredicateLogic;
use crate::syntax::{Instruction, Modifier, Operand, Operation};

impl Lowerer<'_> {
    /// Lowers a comparison whose result is one or two predicates.
    pub(super) fn set_predicate(
        &mut self,
        instruction: &Instruction,
        handler: ComparisonHandler,
    ) -> Lowered {
        let ([destination, a, b, rest @ ..], Some(scalar)) =
            (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let (first, second) = match destination {
            Operand::Register(register) => (Some(*register), None),
            Operand::Pair(first, second) => (*first, *second),
            _ => return Err(Refusal::operand("a predicate")),
        };
        if is_packed(scalar) {
            return self.set_half_predicates(
                instruction,
                handler,
                [first, second],
                scalar,
                [a, b],
                rest.first(),
            );
        }
        let flush = instruction.has(Modifier::FlushToZero);
        let run = handler(comparison(instruction)?, scalar, flush);
        let run = run.ok_or_else(|| Refusal::form(instruction))?;
        let a = self.source(a, scalar)?;
        let b = self.source(b, scalar)?;
        let d = self.predicate_destination(first)?;
        let e = match second {
            Some(register) => self.predicate_register(register)?,
            None => NO_REGISTER,
        };
        let (c, imm) = self.combined(instruction, rest.first())?;
        let op = self.emit(run, d, [a, b, c]);
        (op.e, op.imm) = (e, imm);
        Ok(())
    }

    /// Returns the predicate that a comparison is combined with, and `Op::imm` of its handler.
    pub(super) fn combined(
        &mut self,
        instruction: &Instruction,
        operand: Option<&Operand>,
    ) -> Lowered<(u32, u64)> {
        let Some(operand) = operand else {
            return Ok((0, Combine::None as u64));
        };
        let (c, negate) = self.predicate_source(operand)?;
        let negate = if negate == 0 { 0 } else { Combine::NEGATE };
        Ok((c, combination(instruction)? as u64 | negate))
    }

    /// Lowers an operation on predicates.
    pub(super) fn predicate_logic(
        &mut self,
        instruction: &Instruction,
        logic: PredicateLogic,
    ) -> Lowered {
        let [Operand::Register(destination), sources @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let d = self.predicate_register(*destination)?;
        let mut rows = Vec::new();
        for source in sources {
            rows.push(self.predicate_source(source)?);
        }
        match rows[..] {
            [(a, negate)] => {
                self.emit(run_predicate_copy, d, [a, 0, 0]).e = !negate;
            }
            [(a, negate_a), (b, negate_b)] => {
                let run: Handler = match logic {
                    PredicateLogic::And => run_predicate::<0>,
                    PredicateLogic::Or => run_predicate::<1>,
                    PredicateLogic::Xor => run_predicate::<2>,
                    PredicateLogic::Not => return Err(Refusal::form(instruction)),
                };
                let op = self.emit(run, d, [a, b, 0]);
                op.imm = u64::from(negate_a) << 32 | u64::from(negate_b);
            }
            _ => return Err(Refusal::form(instruction)),
        }
        Ok(())
    }
}

fn combination(instruction: &Instruction) -> Lowered<Combine> {
    let combined = instruction
        .modifiers
        .iter()
        .find_map(|modifier| match modifier {
            Modifier::Operation(Operation::And) => Some(Combine::And),
            Modifier::Operation(Operation::Or) => Some(Combine::Or),
            Modifier::Operation(Operation::Xor) => Some(Combine::Xor),
            _ => None,
        });
    combined.ok_or_else(|| Refusal::form(instruction))
}
