//! Conversions: the pairs of types, and their rounding and saturation.

use super::{Context, MISSING_ROUNDING, Width, sets};
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

/// The presence of a suffix.
#[derive(Clone, Copy)]
enum Presence {
    Required,
    Optional,
    Absent,
}

impl Presence {
    const fn allows(self, is_present: bool) -> bool {
        match self {
            Self::Required => is_present,
            Self::Optional => true,
            Self::Absent => !is_present,
        }
    }
}

/// The suffixes and the number of operands of a conversion with a packed type.
struct PackedRules {
    /// The roundings, of which the instruction has one.
    roundings: &'static [Rounding],
    satfinite: Presence,
    relu: Presence,
    operands: usize,
}

impl Context<'_> {
    /// `cvt`
    pub(super) fn convert(&self) -> Result<(), Error> {
        let types: Vec<ScalarType> = self.instruction.types().collect();
        if self.has_keyword(Keyword::Pack) {
            return self.packing_conversion(&types);
        }
        let [to, from] = types[..] else {
            return Err(self.error("the types of the result and of the source are required"));
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
        let to_float = to.class() == ScalarClass::Float;
        let from_float = from.class() == ScalarClass::Float;
        let has_brain = to == Bf16 || from == Bf16;
        if from == Tf32 {
            return Err(self.no_conversion(to, from));
        }
        let rounds = match (to_float, from_float) {
            (false, false) => Rounds::Never,
            (false, true) => Rounds::ToInteger,
            (true, false) => Rounds::ToFloat,
            (true, true) if to == from => Rounds::MayToInteger,
            (true, true) if from == Bf16 || to.bits() == from.bits() => Rounds::MayToFloat,
            (true, true) if to.bits() < from.bits() => Rounds::ToFloat,
            (true, true) => Rounds::Never,
        };
        self.rounds(rounds)?;
        let clamps = self.has_keyword(Keyword::Relu) || self.has(Modifier::SaturateFinite);
        if clamps {
            let is_narrowing = matches!((to, from), (F16 | Bf16, F32));
            let is_plain = !self.has(Modifier::Saturate) && !self.has(Modifier::FlushToZero);
            let is_even = self.has(Modifier::Round(Rounding::NearestEven))
                || self.has(Modifier::Round(Rounding::Zero));
            if !is_narrowing || !is_plain || !is_even {
                return Err(self.error(
                    "'.relu' and '.satfinite' require '.rn' or '.rz', and a conversion from .f32 to .f16 or .bf16",
                ));
            }
        }
        let saturates = !has_brain && (to_float || from_float || !holds(to, from));
        if self.has(Modifier::Saturate) && !saturates {
            return Err(self.error(format!(
                "'.sat' is not supported from .{} to .{}",
                from.name(),
                to.name()
            )));
        }
        if self.has(Modifier::FlushToZero) && to != F32 && from != F32 {
            return Err(self.error("'.ftz' requires .f32"));
        }
        Ok(())
    }

    fn no_conversion(&self, to: ScalarType, from: ScalarType) -> Error {
        self.error(format!(
            "no conversion from .{} to .{}",
            from.name(),
            to.name()
        ))
    }

    /// Checks the rounding and saturation of a conversion to tf32.
    fn tensor_conversion(&self, from: ScalarType) -> Result<(), Error> {
        let relu = self.has_keyword(Keyword::Relu);
        let is_plain = !self.has(Modifier::Saturate) && !self.has(Modifier::FlushToZero);
        let rounds = match self.rounding() {
            Some(Rounding::NearestEven | Rounding::Zero) => true,
            Some(Rounding::NearestAway) => !relu,
            _ => false,
        };
        if from == ScalarType::F32 && is_plain && rounds {
            return Ok(());
        }
        Err(self.error("conversions to .tf32 require .f32 and '.rn', '.rz' or '.rna'"))
    }

    fn rounding(&self) -> Option<Rounding> {
        self.instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Round(rounding) => Some(*rounding),
                _ => None,
            })
    }

    /// Checks that the instruction has a rounding of this kind.
    fn rounds(&self, rounds: Rounds) -> Result<(), Error> {
        use Rounding as R;
        let suits = match self.rounding() {
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
            (false, Rounds::Never) => {
                Err(self.error("unexpected rounding (the conversion is exact)"))
            }
            (false, Rounds::ToFloat) => Err(self.error(MISSING_ROUNDING)),
            (false, Rounds::MayToFloat) => {
                Err(self.error("unsupported rounding (expected one such as '.rn')"))
            }
            (false, Rounds::ToInteger) => Err(self.error("missing rounding, such as '.rzi'")),
            (false, Rounds::MayToInteger) => {
                Err(self.error("unsupported rounding (expected one such as '.rzi')"))
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
        let rules = match (to, from) {
            (to, S::F32) if halves.contains(&to) && is_random => PackedRules {
                roundings: &[R::Stochastic],
                satfinite: Presence::Optional,
                relu: Presence::Optional,
                operands: 4,
            },
            (to, S::F32) if halves.contains(&to) => PackedRules {
                roundings: &[R::NearestEven, R::Zero],
                satfinite: Presence::Optional,
                relu: Presence::Optional,
                operands: 3,
            },
            (to, S::F32) if small.contains(&to) => PackedRules {
                roundings: &[R::NearestEven],
                satfinite: Presence::Required,
                relu: Presence::Optional,
                operands: 3,
            },
            (to, S::F16x2) if small.contains(&to) => PackedRules {
                roundings: &[R::NearestEven],
                satfinite: Presence::Required,
                relu: Presence::Optional,
                operands: 2,
            },
            (to, S::F32) if four.contains(&to) => PackedRules {
                roundings: &[R::Stochastic],
                satfinite: Presence::Required,
                relu: Presence::Optional,
                operands: 3,
            },
            (S::F16x2, from) if small.contains(&from) => PackedRules {
                roundings: &[R::NearestEven],
                satfinite: Presence::Absent,
                relu: Presence::Optional,
                operands: 2,
            },
            (S::Bf16x2, S::Ue8m0x2) => PackedRules {
                roundings: &[R::NearestEven],
                satfinite: Presence::Absent,
                relu: Presence::Absent,
                operands: 2,
            },
            (S::Ue8m0x2, S::F32) => PackedRules {
                roundings: &[R::Zero, R::Up],
                satfinite: Presence::Optional,
                relu: Presence::Absent,
                operands: 3,
            },
            (S::Ue8m0x2, S::Bf16x2) => PackedRules {
                roundings: &[R::Zero, R::Up],
                satfinite: Presence::Optional,
                relu: Presence::Absent,
                operands: 2,
            },
            _ => return Err(self.no_conversion(to, from)),
        };
        let has_rounding = rules
            .roundings
            .iter()
            .any(|rounding| self.has(Modifier::Round(*rounding)));
        let is_valid = has_rounding
            && rules.satfinite.allows(self.has(Modifier::SaturateFinite))
            && rules.relu.allows(self.has_keyword(Keyword::Relu))
            && !self.has(Modifier::Saturate)
            && !self.has(Modifier::FlushToZero);
        if !is_valid {
            return Err(self.error(format!(
                "unsupported rounding or saturation for a conversion to .{}",
                to.name()
            )));
        }
        self.count(rules.operands..=rules.operands)?;
        let has_vector = matches!(self.operand(1), Operand::Vector(_));
        if has_vector != four.contains(&to) {
            let expected = if has_vector {
                "a register"
            } else {
                "a vector of four registers"
            };
            return Err(self.operand_error(1, expected));
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
                return Err(self.error(
                    "unsupported types for '.pack' (expected .u16.s32, .s16.s32, or an 8-, 4- or 2-bit type with .s32.b32)",
                ));
            }
        };
        if !self.has(Modifier::Saturate) {
            return Err(self.error("'.pack' requires '.sat'"));
        }
        self.count(count..=count)?;
        self.destination(0, S::B32, Width::Exact)?;
        (1..count).try_for_each(|index| self.source(index, S::B32, Width::Exact))
    }
}

/// Returns `true` if an integer type represents all numbers of another.
fn holds(to: ScalarType, from: ScalarType) -> bool {
    let to_signed = to.class() == ScalarClass::Signed;
    let from_signed = from.class() == ScalarClass::Signed;
    match (to_signed, from_signed) {
        (true, false) => to.bits() > from.bits(),
        (false, true) => false,
        _ => to.bits() >= from.bits(),
    }
}
