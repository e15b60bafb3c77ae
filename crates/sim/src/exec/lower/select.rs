//! Comparisons and selections.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use super::moves::predicate_copy;
use super::set::{comparison, is_packed};
use crate::exec::handler::{Combine, NO_REGISTER, compare, select};
use crate::exec::logic::run_predicate;
use crate::exec::op::Handler;
use crate::ptx::{Compare, Instruction, Modifier, Opcode, Operand, Operation, ScalarType};

impl Lowerer<'_> {
    pub(super) fn set_predicate(&mut self, instruction: &Instruction) -> Lowered {
        let ([destination, a, b, rest @ ..], Some(scalar)) = (&instruction.operands[..], instruction.types().next())
        else {
            return Err(Refusal::form(instruction));
        };
        let (first, second) = match destination {
            Operand::Register(register) => (Some(*register), None),
            Operand::Pair(first, second) => (*first, *second),
            Operand::Sink => (None, None),
            _ => return Err(Refusal::operand("a predicate")),
        };
        if is_packed(scalar) {
            return self.set_predicates_of_halves(instruction, [first, second], scalar, [a, b], rest.first());
        }
        let flush = instruction.has(Modifier::FlushToZero);
        let run = comparison_handler(comparison(instruction)?, scalar, flush);
        let run = run.ok_or_else(|| Refusal::form(instruction))?;
        let (a, b) = (self.source(a, scalar)?, self.source(b, scalar)?);
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
    pub(super) fn combined(&mut self, instruction: &Instruction, operand: Option<&Operand>) -> Lowered<(u32, u64)> {
        let Some(operand) = operand else {
            return Ok((0, Combine::None as u64));
        };
        let (c, negate) = self.predicate_source(operand)?;
        let negate = if negate == 0 { 0 } else { Combine::NEGATE };
        Ok((c, combination(instruction)? as u64 | negate))
    }

    pub(super) fn select(&mut self, instruction: &Instruction) -> Lowered {
        let ([destination, a, b, c], Some(scalar)) = (&instruction.operands[..], instruction.types().next()) else {
            return Err(Refusal::form(instruction));
        };
        let (a, b) = (self.source(a, scalar)?, self.source(b, scalar)?);
        let (c, negate) = self.predicate_source(c)?;
        let d = self.destination(destination, scalar)?;
        let run = if scalar.bits() == 64 { select::<u64>() } else { select::<u32>() };
        self.emit(run, d, [a, b, c]).e = negate;
        Ok(())
    }

    pub(super) fn predicate_logic(&mut self, instruction: &Instruction) -> Lowered {
        let [Operand::Register(destination), sources @ ..] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let d = self.predicate_register(*destination)?;
        let mut rows = Vec::new();
        for source in sources {
            rows.push(self.predicate_source(source)?);
        }
        match (instruction.opcode, &rows[..]) {
            (Opcode::Not, &[(a, negate)]) => {
                self.emit(predicate_copy(), d, [a, 0, 0]).e = !negate;
            }
            (opcode, &[(a, negate_a), (b, negate_b)]) => {
                let run: Handler = match opcode {
                    Opcode::And => run_predicate::<0>,
                    Opcode::Or => run_predicate::<1>,
                    _ => run_predicate::<2>,
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
    let combined = instruction.modifiers.iter().find_map(|modifier| match modifier {
        Modifier::Operation(Operation::And) => Some(Combine::And),
        Modifier::Operation(Operation::Or) => Some(Combine::Or),
        Modifier::Operation(Operation::Xor) => Some(Combine::Xor),
        _ => None,
    });
    combined.ok_or_else(|| Refusal::form(instruction))
}

/// Returns the handler of a comparison.
pub(super) fn comparison_handler(comparison: Compare, scalar: ScalarType, flush: bool) -> Option<Handler> {
    match scalar {
        ScalarType::F32 if flush => float_comparison::<Flushed>(comparison),
        ScalarType::F32 => float_comparison::<f32>(comparison),
        ScalarType::F64 => float_comparison::<f64>(comparison),
        ScalarType::F16 if flush => float_comparison::<FlushedHalf>(comparison),
        ScalarType::F16 => float_comparison::<crate::exec::narrow::Half>(comparison),
        ScalarType::Bf16 => float_comparison::<crate::exec::narrow::Bfloat>(comparison),
        ScalarType::U16 | ScalarType::B16 => integer_comparison::<u16>(comparison),
        ScalarType::S16 => integer_comparison::<i16>(comparison),
        ScalarType::U32 | ScalarType::B32 => integer_comparison::<u32>(comparison),
        ScalarType::S32 => integer_comparison::<i32>(comparison),
        ScalarType::U64 | ScalarType::B64 => integer_comparison::<u64>(comparison),
        ScalarType::S64 => integer_comparison::<i64>(comparison),
        _ => None,
    }
}

fn integer_comparison<T>(comparison: Compare) -> Option<Handler>
where
    T: crate::exec::lane::Lane<Raw: crate::exec::frame::InFile> + Ord,
{
    Some(match comparison {
        Compare::Equal => compare(|a: T, b: T| a == b),
        Compare::NotEqual => compare(|a: T, b: T| a != b),
        Compare::Less | Compare::Lower => compare(|a: T, b: T| a < b),
        Compare::LessEqual | Compare::LowerSame => compare(|a: T, b: T| a <= b),
        Compare::Greater | Compare::Higher => compare(|a: T, b: T| a > b),
        Compare::GreaterEqual | Compare::HigherSame => compare(|a: T, b: T| a >= b),
        _ => return None,
    })
}

/// A floating-point operand as a comparison sees it.
trait Comparable: crate::exec::lane::Lane<Raw: crate::exec::frame::InFile> {
    type Value: PartialOrd;
    fn value(self) -> Self::Value;
}

/// An f32 whose subnormals compare as zero.
#[derive(Clone, Copy)]
struct Flushed(f32);

impl crate::exec::lane::Lane for Flushed {
    type Raw = u32;
    #[inline(always)]
    fn from_raw(raw: u32) -> Self {
        Self(crate::exec::float::flush(f32::from_bits(raw)))
    }
    #[inline(always)]
    fn into_raw(self) -> u32 {
        self.0.to_bits()
    }
}

/// An f16 whose subnormals compare as zero.
#[derive(Clone, Copy)]
struct FlushedHalf(crate::exec::narrow::Half);

impl crate::exec::lane::Lane for FlushedHalf {
    type Raw = u32;
    #[inline(always)]
    fn from_raw(raw: u32) -> Self {
        Self(crate::exec::float::flush_any(crate::exec::narrow::Half(raw as u16)))
    }
    #[inline(always)]
    fn into_raw(self) -> u32 {
        u32::from(self.0.0)
    }
}

macro_rules! comparable {
    ($($ty:ty => $value:ty, $it:ident $body:expr);*) => {$(
        impl Comparable for $ty {
            type Value = $value;
            #[inline(always)]
            fn value(self) -> $value {
                let $it = self;
                $body
            }
        }
    )*};
}

comparable!(
    f32 => f32, it it;
    f64 => f64, it it;
    Flushed => f32, it it.0;
    FlushedHalf => f64, it crate::exec::float::Real::to_f64(it.0);
    crate::exec::narrow::Half => f64, it crate::exec::float::Real::to_f64(it);
    crate::exec::narrow::Bfloat => f64, it crate::exec::float::Real::to_f64(it)
);

#[expect(clippy::neg_cmp_op_on_partial_ord, reason = "the negation is true for unordered operands")]
fn float_comparison<T: Comparable>(comparison: Compare) -> Option<Handler> {
    Some(match comparison {
        Compare::Equal => compare(|a: T, b: T| a.value() == b.value()),
        Compare::NotEqual => compare(|a: T, b: T| a.value() < b.value() || a.value() > b.value()),
        Compare::Less => compare(|a: T, b: T| a.value() < b.value()),
        Compare::LessEqual => compare(|a: T, b: T| a.value() <= b.value()),
        Compare::Greater => compare(|a: T, b: T| a.value() > b.value()),
        Compare::GreaterEqual => compare(|a: T, b: T| a.value() >= b.value()),
        Compare::EqualUnordered => compare(|a: T, b: T| !(a.value() < b.value() || a.value() > b.value())),
        Compare::NotEqualUnordered => compare(|a: T, b: T| a.value() != b.value()),
        Compare::LessUnordered => compare(|a: T, b: T| !(a.value() >= b.value())),
        Compare::LessEqualUnordered => compare(|a: T, b: T| !(a.value() > b.value())),
        Compare::GreaterUnordered => compare(|a: T, b: T| !(a.value() <= b.value())),
        Compare::GreaterEqualUnordered => compare(|a: T, b: T| !(a.value() < b.value())),
        Compare::Ordered => compare(|a: T, b: T| a.value().partial_cmp(&b.value()).is_some()),
        Compare::Unordered => compare(|a: T, b: T| a.value().partial_cmp(&b.value()).is_none()),
        _ => return None,
    })
}
