//! `cvt`.

use super::convert_packed::is_small;
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::ops::handler::convert::{direct, general};
use crate::exec::ops::handler::moves::pack_halves;
use crate::exec::values::convert::{Conversion, Target};
use crate::exec::values::exact::{BF16, F16, F32, F64, Rounding};
use crate::exec::values::lane::Lane;
use crate::syntax::{
    Instruction, Keyword, Modifier, Operand, Rounding as Written, ScalarClass, ScalarType,
};

impl Lowerer<'_> {
    /// `cvt`.
    pub(super) fn convert(&mut self, instruction: &Instruction) -> Lowered {
        if instruction.has_keyword(Keyword::Pack) {
            return self.pack_integers(instruction);
        }
        let types: Vec<ScalarType> = instruction.types().collect();
        let [to, from] = types[..] else {
            return Err(Refusal::form(instruction));
        };
        if instruction.rounding() == Some(Written::Stochastic) {
            return self.convert_at_random(instruction, to, from);
        }
        if to == ScalarType::Tf32 || is_small(to) || is_small(from) {
            return self.convert_small(instruction, to, from);
        }
        if let ([destination, high, low], ScalarType::F16x2 | ScalarType::Bf16x2) =
            (&instruction.operands[..], to)
        {
            return self.convert_pair(instruction, destination, [high, low], to, from);
        }
        let [destination, source] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        let a = self.source(source, from)?;
        let d = self.destination(destination, to)?;
        if let Some(run) = direct(instruction, to, from) {
            self.emit(run, d, [a, 0, 0]);
            return Ok(());
        }
        let conversion = conversion(instruction, to, from)?;
        let run = general(from, to).ok_or_else(|| Refusal::form(instruction))?;
        let mode = self.word(conversion.into_raw());
        self.emit(run, d, [a, mode, 0]);
        Ok(())
    }

    /// Converts two f32 to the halves of a packed register, the first to the upper half.
    fn convert_pair(
        &mut self,
        instruction: &Instruction,
        destination: &Operand,
        sources: [&Operand; 2],
        to: ScalarType,
        from: ScalarType,
    ) -> Lowered {
        let half = if to == ScalarType::F16x2 {
            ScalarType::F16
        } else {
            ScalarType::Bf16
        };
        let mode = self.word(conversion(instruction, half, from)?.into_raw());
        let run = general(from, half).ok_or_else(|| Refusal::form(instruction))?;
        let mut halves = [0; 2];
        for (row, source) in halves.iter_mut().zip(sources) {
            let a = self.source(source, from)?;
            *row = self.new_word();
            self.emit(run, *row, [a, mode, 0]);
        }
        let d = self.destination(destination, ScalarType::B32)?;
        self.emit(pack_halves(), d, [halves[1], halves[0], 0]);
        Ok(())
    }
}

fn conversion(instruction: &Instruction, to: ScalarType, from: ScalarType) -> Lowered<Conversion> {
    let written = instruction.rounding();
    let rounding = match written {
        Some(Written::NearestEven | Written::IntegerNearestEven) => Rounding::Nearest,
        Some(Written::Zero | Written::IntegerZero) => Rounding::Zero,
        Some(Written::Down | Written::IntegerDown) => Rounding::Down,
        Some(Written::Up | Written::IntegerUp) => Rounding::Up,
        // A conversion without a rounding is exact, or between integers.
        None => Rounding::Zero,
        Some(_) => return Err(Refusal::form(instruction)),
    };
    let target = match to {
        ScalarType::F16 => Target::Real(F16),
        ScalarType::Bf16 => Target::Real(BF16),
        ScalarType::F32 => Target::Real(F32),
        ScalarType::F64 => Target::Real(F64),
        _ if to.is_integer_like() && matches!(to.bits(), 8 | 16 | 32 | 64) => Target::Integer {
            bits: to.bits(),
            signed: to.class() == ScalarClass::Signed,
        },
        _ => return Err(Refusal::scalar(instruction, to)),
    };
    let both_float = to.class() == ScalarClass::Float && from.class() == ScalarClass::Float;
    let integral = matches!(
        written,
        Some(
            Written::IntegerNearestEven
                | Written::IntegerZero
                | Written::IntegerDown
                | Written::IntegerUp
        )
    );
    Ok(Conversion {
        target,
        rounding,
        integral: both_float && integral,
        saturate: instruction.has(Modifier::Saturate),
        rectify: instruction.has_keyword(Keyword::Relu),
        flush: instruction.has(Modifier::FlushToZero),
        finite: instruction.has(Modifier::SaturateFinite),
    })
}
