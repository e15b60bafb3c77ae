//! `cvt` to and from tf32 and the formats of at most 8 bits.

use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::op::Handler;
use crate::exec::ops::handler::convert_packed::{narrowing, pack_integers, to_tf32, widening};
use crate::exec::ops::handler::convert_random::join;
use crate::exec::ops::handler::moves::widen_half;
use crate::syntax::{Instruction, Operand, ScalarType};

/// Returns `true` if a type is a pair of numbers of at most 8 bits.
pub(super) fn is_small(scalar: ScalarType) -> bool {
    use ScalarType as S;
    matches!(
        scalar,
        S::E4m3x2 | S::E5m2x2 | S::E2m3x2 | S::E3m2x2 | S::E2m1x2 | S::Ue8m0x2
    )
}

/// Returns the number of bits of each of the two numbers.
fn width(scalar: ScalarType) -> u32 {
    if scalar == ScalarType::E2m1x2 { 4 } else { 8 }
}

impl Lowerer<'_> {
    /// `cvt` with tf32 or a format of at most 8 bits.
    pub(super) fn convert_small(
        &mut self,
        instruction: &Instruction,
        to: ScalarType,
        from: ScalarType,
    ) -> Lowered {
        match &instruction.operands[..] {
            [destination, source] if to == ScalarType::Tf32 && from == ScalarType::F32 => {
                let a = self.source(source, from)?;
                let run = to_tf32(instruction).ok_or_else(|| Refusal::form(instruction))?;
                let d = self.destination(destination, ScalarType::B32)?;
                self.emit(run, d, [a, 0, 0]);
                Ok(())
            }
            [destination, high, low] if from == ScalarType::F32 => {
                let high = self.source(high, from)?;
                let low = self.source(low, from)?;
                let run = narrowing(instruction, to).ok_or_else(|| Refusal::form(instruction))?;
                self.narrow_pair(destination, to, run, [high, low])
            }
            [destination, source]
                if from == ScalarType::F16x2 && is_small(to)
                    || from == ScalarType::Bf16x2 && to == ScalarType::Ue8m0x2 =>
            {
                let widen = widen_half(from).ok_or_else(|| Refusal::form(instruction))?;
                let a = self.source(source, ScalarType::B32)?;
                let [low, high] = self.halves(a).map(|half| (half, self.new_word()));
                for (half, wide) in [low, high] {
                    self.emit(widen, wide, [half, 0, 0]);
                }
                let run = narrowing(instruction, to).ok_or_else(|| Refusal::form(instruction))?;
                self.narrow_pair(destination, to, run, [high.1, low.1])
            }
            [destination, source] if is_small(from) => {
                self.widen_pair(instruction, destination, source, to, from)
            }
            _ => Err(Refusal::form(instruction)),
        }
    }

    /// `cvt.pack`: two saturated integers, below the low bits of a third operand.
    pub(super) fn pack_integers(&mut self, instruction: &Instruction) -> Lowered {
        let (Some(to), [destination, a, b, rest @ ..]) =
            (instruction.types().next(), &instruction.operands[..])
        else {
            return Err(Refusal::form(instruction));
        };
        let run = pack_integers(to).ok_or_else(|| Refusal::scalar(instruction, to))?;
        let c = match rest.first() {
            Some(c) => self.source(c, ScalarType::B32)?,
            None => self.word(0),
        };
        let a = self.source(a, ScalarType::S32)?;
        let b = self.source(b, ScalarType::S32)?;
        let d = self.destination(destination, ScalarType::B32)?;
        self.emit(run, d, [a, b, c]);
        Ok(())
    }

    fn narrow_pair(
        &mut self,
        destination: &Operand,
        to: ScalarType,
        run: Handler,
        sources: [u32; 2],
    ) -> Lowered {
        let halves = [self.new_word(), self.new_word()];
        for (half, source) in halves.into_iter().zip(sources) {
            self.emit(run, half, [source, 0, 0]);
        }
        let d = self.destination(destination, ScalarType::B16)?;
        self.emit(join(width(to)), d, [halves[0], halves[1], 0]);
        Ok(())
    }

    fn widen_pair(
        &mut self,
        instruction: &Instruction,
        destination: &Operand,
        source: &Operand,
        to: ScalarType,
        from: ScalarType,
    ) -> Lowered {
        let a = self.source(source, ScalarType::B16)?;
        let run = widening(instruction, to, from).ok_or_else(|| Refusal::form(instruction))?;
        let d = self.destination(destination, ScalarType::B32)?;
        self.emit(run, d, [a, 0, 0]);
        Ok(())
    }
}
