//! `cvt`.

use super::convert_packed::is_small;
use super::error::{Lowered, Refusal};
use super::function::Lowerer;
use crate::exec::machine::frame::InFile;
use crate::exec::machine::op::Handler;
use crate::exec::ops::handler::moves::pack_halves;
use crate::exec::ops::handler::{binary, unary};
use crate::exec::values::convert::{Conversion, Floating, Source, Target, f32_to_f64, f64_to_f32};
use crate::exec::values::exact::{BF16, F16, F32, F64, Rounding};
use crate::exec::values::float::canonical;
use crate::exec::values::lane::Lane;
use crate::exec::values::narrow::{Bfloat, Half};
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

/// Returns the handler of a conversion that compilers emit often; `None` for the others.
fn direct(instruction: &Instruction, to: ScalarType, from: ScalarType) -> Option<Handler> {
    if instruction.has(Modifier::Saturate)
        || instruction.has(Modifier::SaturateFinite)
        || instruction.has(Modifier::FlushToZero)
        || instruction.has_keyword(Keyword::Relu)
    {
        return None;
    }
    if to.is_integer_like() && from.is_integer_like() {
        return integer_to_integer(to, from);
    }
    use ScalarType as S;
    Some(match (to, from, instruction.rounding()) {
        (S::F32, S::S32, Some(Written::NearestEven)) => unary(|a: i32| a as f32),
        (S::F32, S::U32, Some(Written::NearestEven)) => unary(|a: u32| a as f32),
        (S::F32, S::U64, Some(Written::NearestEven)) => unary(|a: u64| a as f32),
        (S::F32, S::S64, Some(Written::NearestEven)) => unary(|a: i64| a as f32),
        (S::F64, S::S32, _) => unary(|a: i32| f64::from(a)),
        (S::F64, S::U32, _) => unary(|a: u32| f64::from(a)),
        (S::F64, S::S64, Some(Written::NearestEven)) => unary(|a: i64| a as f64),
        (S::F64, S::U64, Some(Written::NearestEven)) => unary(|a: u64| a as f64),
        // Rust's casts clamp, and convert NaN to zero, like conversions from f32 to 32 bits.
        (S::S32, S::F32, Some(Written::IntegerZero)) => unary(|a: f32| a as i32),
        (S::U32, S::F32, Some(Written::IntegerZero)) => unary(|a: f32| a as u32),
        (S::F32, S::F64, Some(Written::NearestEven)) => unary(f64_to_f32),
        (S::F64, S::F32, None) => unary(f32_to_f64),
        (S::F32, S::F32, None) => unary(canonical),
        (S::F32, S::F16, None) => unary(|a: Half| canonical(a.to_f32())),
        (S::F32, S::Bf16, None) => unary(|a: u16| u32::from(a) << 16),
        (S::F16, S::F32, Some(Written::NearestEven)) => unary(Half::from_f32),
        (S::Bf16, S::F32, Some(Written::NearestEven)) => unary(Bfloat::from_f32),
        _ => return None,
    })
}

fn integer_to_integer(to: ScalarType, from: ScalarType) -> Option<Handler> {
    macro_rules! pair {
        ($from:ty) => {
            match (to.bits(), to.class() == ScalarClass::Signed) {
                (8, false) => unary(|a: $from| a as u8),
                (8, true) => unary(|a: $from| a as i8),
                (16, false) => unary(|a: $from| a as u16),
                (16, true) => unary(|a: $from| a as i16),
                (32, _) => unary(|a: $from| a as u32),
                (64, _) => unary(|a: $from| a as u64),
                _ => return None,
            }
        };
    }
    Some(match (from.bits(), from.class() == ScalarClass::Signed) {
        (8, false) => pair!(u8),
        (8, true) => pair!(i8),
        (16, false) => pair!(u16),
        (16, true) => pair!(i16),
        (32, false) => pair!(u32),
        (32, true) => pair!(i32),
        (64, false) => pair!(u64),
        (64, true) => pair!(i64),
        _ => return None,
    })
}

/// Returns the handler of a conversion that its second operand describes.
fn general(from: ScalarType, to: ScalarType) -> Option<Handler> {
    let wide = to.bits() == 64;
    Some(match from {
        ScalarType::F16 => convert::<Floating<Half>>(wide),
        ScalarType::Bf16 => convert::<Floating<Bfloat>>(wide),
        ScalarType::F32 => convert::<Floating<f32>>(wide),
        ScalarType::F64 => convert::<Floating<f64>>(wide),
        ScalarType::U8 | ScalarType::B8 => convert::<u8>(wide),
        ScalarType::S8 => convert::<i8>(wide),
        ScalarType::U16 | ScalarType::B16 => convert::<u16>(wide),
        ScalarType::S16 => convert::<i16>(wide),
        ScalarType::U32 | ScalarType::B32 => convert::<u32>(wide),
        ScalarType::S32 => convert::<i32>(wide),
        ScalarType::U64 | ScalarType::B64 => convert::<u64>(wide),
        ScalarType::S64 => convert::<i64>(wide),
        _ => return None,
    })
}

fn convert<S: Source + Lane<Raw: InFile>>(wide: bool) -> Handler {
    if wide {
        binary(|a: S, mode: Conversion| mode.apply(a.number()))
    } else {
        binary(|a: S, mode: Conversion| mode.apply(a.number()) as u32)
    }
}
