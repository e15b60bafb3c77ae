//! Conversions: the pairs of types, and their rounding and saturation.

use super::{Context, Width, sets};
use crate::syntax::error::Error;
use crate::syntax::keyword::Keyword;
use crate::syntax::modifier::{Modifier, Rounding};
use crate::syntax::operand::Operand;
use crate::syntax::scalar::{ScalarClass, ScalarType};

/// The rounding of a conversion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounds {
    /// No rounding.
    Never,
    /// A required rounding to a number of the result's type.
    ToFloat,
    /// An optional rounding to a number of the result's type.
    MayToFloat,
    /// A required rounding to an integer.
    ToInteger,
    /// An optional rounding to an integer.
    MayToInteger,
}

impl Context<'_> {
    /// `cvt`
    pub(super) fn convert(&self) -> Result<(), Error> {
        let types: Vec<ScalarType> = self.instruction.types().collect();
        if self.has(Modifier::Keyword(Keyword::Pack)) {
            return self.packing_conversion(&types);
        }
        let [to, from] = types[..] else {
            return Err(self.lacks("two types: of the result and of the source"));
        };
        if !sets::CONVERTED.contains(&to) || !sets::CONVERTED.contains(&from) {
            return self.packed_conversion(to, from);
        }
        self.plain_conversion(to, from)?;
        self.count(2..=2)?;
        // Registers that are wider than a type are for the types that PTX had before bf16.
        let has_brain = [to, from].contains(&ScalarType::Bf16);
        let width = if has_brain {
            Width::Exact
        } else {
            Width::Relaxed
        };
        self.destination(0, to, width)?;
        self.source(1, from, width)
    }

    /// Checks the suffixes of a conversion between single numbers.
    fn plain_conversion(&self, to: ScalarType, from: ScalarType) -> Result<(), Error> {
        use ScalarType::{Bf16, F16, F32, Tf32};
        if to == Tf32 {
            return self.tensor_conversion(from);
        }
        let is_float = |scalar: ScalarType| scalar.class() == ScalarClass::Float;
        let has_brain = to == Bf16 || from == Bf16;
        if from == Tf32 {
            return Err(self.lacks(format!(
                "an existing conversion, not from .{} to .{}",
                from.name(),
                to.name()
            )));
        }
        let rounds = match (is_float(to), is_float(from)) {
            (false, false) => Rounds::Never,
            (false, true) => Rounds::ToInteger,
            (true, false) => Rounds::ToFloat,
            (true, true) if to == from => Rounds::MayToInteger,
            (true, true) if from == Bf16 || to.bits() == from.bits() => Rounds::MayToFloat,
            (true, true) if to.bits() < from.bits() => Rounds::ToFloat,
            (true, true) => Rounds::Never,
        };
        self.rounds(rounds)?;
        let clamps =
            self.has(Modifier::Keyword(Keyword::Relu)) || self.has(Modifier::SaturateFinite);
        if clamps {
            let is_narrowing = matches!((to, from), (F16 | Bf16, F32));
            let is_plain = !self.has(Modifier::Saturate) && !self.has(Modifier::FlushToZero);
            let is_even = self.has(Modifier::Round(Rounding::NearestEven))
                || self.has(Modifier::Round(Rounding::Zero));
            if !is_narrowing || !is_plain || !is_even {
                return Err(self.lacks(
                    "'.relu' and '.satfinite' with '.rn' or '.rz' from .f32 to .f16 or .bf16 only",
                ));
            }
        }
        let saturates = !has_brain && (is_float(to) || is_float(from) || !holds(to, from));
        if self.has(Modifier::Saturate) && !saturates {
            return Err(self.lacks(format!("no '.sat' from .{} to .{}", from.name(), to.name())));
        }
        if self.has(Modifier::FlushToZero) && to != F32 && from != F32 {
            return Err(self.lacks("no '.ftz' without .f32"));
        }
        Ok(())
    }

    /// Checks the rounding and saturation of a conversion to tf32.
    fn tensor_conversion(&self, from: ScalarType) -> Result<(), Error> {
        let has = |rounding| self.has(Modifier::Round(rounding));
        let relu = self.has(Modifier::Keyword(Keyword::Relu));
        let is_away = has(Rounding::NearestAway) && !relu;
        let is_plain = !self.has(Modifier::Saturate) && !self.has(Modifier::FlushToZero);
        let rounds = is_away || has(Rounding::NearestEven) || has(Rounding::Zero);
        if from == ScalarType::F32 && is_plain && rounds {
            return Ok(());
        }
        Err(self.lacks("'.rn', '.rz' or '.rna' from .f32 to .tf32"))
    }

    /// Checks that the instruction has a rounding of this kind.
    fn rounds(&self, rounds: Rounds) -> Result<(), Error> {
        use Rounding as R;
        let found = self
            .instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Round(rounding) => Some(*rounding),
                _ => None,
            });
        let suits = match found {
            None => matches!(
                rounds,
                Rounds::Never | Rounds::MayToFloat | Rounds::MayToInteger
            ),
            Some(R::NearestEven | R::Zero | R::Up | R::Down) => {
                matches!(rounds, Rounds::ToFloat | Rounds::MayToFloat)
            }
            Some(R::IntegerNearestEven | R::IntegerZero | R::IntegerUp | R::IntegerDown) => {
                matches!(rounds, Rounds::ToInteger | Rounds::MayToInteger)
            }
            Some(_) => false,
        };
        match (suits, rounds) {
            (true, _) => Ok(()),
            (false, Rounds::Never) => Err(self.lacks("no rounding, as the result is exact")),
            (false, Rounds::ToFloat | Rounds::MayToFloat) => {
                Err(self.lacks("a rounding such as '.rn'"))
            }
            (false, Rounds::ToInteger | Rounds::MayToInteger) => {
                Err(self.lacks("a rounding such as '.rzi'"))
            }
        }
    }

    /// Checks a conversion with a packed type.
    fn packed_conversion(&self, to: ScalarType, from: ScalarType) -> Result<(), Error> {
        use Rounding as R;
        use ScalarType as S;
        let halves = [S::F16x2, S::Bf16x2];
        let small = [S::E4m3x2, S::E5m2x2, S::E2m3x2, S::E3m2x2, S::E2m1x2];
        let four = [S::E4m3x4, S::E5m2x4, S::E2m3x4, S::E3m2x4, S::E2m1x4];
        let is_random = self.has(Modifier::Round(R::Stochastic));
        // The roundings, `.satfinite` allowed and required, `.relu` allowed, and the number of operands.
        let (rounds, may_be_finite, must_be_finite, may_rectify, count): (&[R], _, _, _, _) =
            match (to, from) {
                (to, S::F32) if halves.contains(&to) && is_random => {
                    (&[R::Stochastic], true, false, true, 4)
                }
                (to, S::F32) if halves.contains(&to) => {
                    (&[R::NearestEven, R::Zero], true, false, true, 3)
                }
                (to, S::F32) if small.contains(&to) => (&[R::NearestEven], true, true, true, 3),
                (to, S::F16x2) if small.contains(&to) => (&[R::NearestEven], true, true, true, 2),
                (to, S::F32) if four.contains(&to) => (&[R::Stochastic], true, true, true, 3),
                (S::F16x2, from) if small.contains(&from) => {
                    (&[R::NearestEven], false, false, true, 2)
                }
                (S::Bf16x2, S::Ue8m0x2) => (&[R::NearestEven], false, false, false, 2),
                (S::Ue8m0x2, S::F32) => (&[R::Zero, R::Up], true, false, false, 3),
                (S::Ue8m0x2, S::Bf16x2) => (&[R::Zero, R::Up], true, false, false, 2),
                _ => {
                    return Err(self.lacks(format!(
                        "an existing conversion, not from .{} to .{}",
                        from.name(),
                        to.name()
                    )));
                }
            };
        let is_finite = self.has(Modifier::SaturateFinite);
        let suits = rounds
            .iter()
            .any(|rounding| self.has(Modifier::Round(*rounding)))
            && (may_be_finite || !is_finite)
            && (is_finite || !must_be_finite)
            && (may_rectify || !self.has(Modifier::Keyword(Keyword::Relu)))
            && !self.has(Modifier::Saturate)
            && !self.has(Modifier::FlushToZero);
        if !suits {
            return Err(self.lacks(format!(
                "the rounding and saturation of conversions to .{}",
                to.name()
            )));
        }
        self.count(count..=count)?;
        let has_vector = matches!(self.operand(1), Operand::Vector(_));
        if has_vector != four.contains(&to) {
            return Err(self.wrong(
                1,
                format!("the source operands of conversions to .{}", to.name()),
            ));
        }
        self.destination(0, to, Width::Relaxed)
    }

    /// `cvt.pack`
    fn packing_conversion(&self, types: &[ScalarType]) -> Result<(), Error> {
        use ScalarType as S;
        let count = match types {
            [S::U16 | S::S16, S::S32] => 3,
            [
                S::U8 | S::S8 | S::U4 | S::S4 | S::U2 | S::S2,
                S::S32,
                S::B32,
            ] => 4,
            _ => {
                return Err(self.lacks(
                    "the types of '.pack': two .s32 as halves, or below the bits of a .b32",
                ));
            }
        };
        if !self.has(Modifier::Saturate) {
            return Err(self.lacks("'.sat'"));
        }
        self.count(count..=count)?;
        self.destination(0, S::B32, Width::Exact)?;
        (1..count).try_for_each(|index| self.source(index, S::B32, Width::Exact))
    }
}

/// Returns `true` if an integer type represents all numbers of another.
fn holds(to: ScalarType, from: ScalarType) -> bool {
    let is_signed = |scalar: ScalarType| scalar.class() == ScalarClass::Signed;
    match (is_signed(to), is_signed(from)) {
        (true, false) => to.bits() > from.bits(),
        (false, true) => false,
        _ => to.bits() >= from.bits(),
    }
}
