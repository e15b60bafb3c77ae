//! Arithmetic, logic and comparison.

use super::{Context, MISSING_ROUNDING, Width, sets, type_list};
use crate::syntax::error::Error;
use crate::syntax::keyword::Keyword;
use crate::syntax::modifier::{Compare, Modifier, Operation, Rounding};
use crate::syntax::opcode::Opcode;
use crate::syntax::operand::Operand;
use crate::syntax::scalar::{ScalarClass, ScalarType};

impl Context<'_> {
    /// `add`, `sub`, `min`, `max`. A second type is that of the narrower operand of a mixed-precision sum.
    pub(super) fn sum(&self) -> Result<(), Error> {
        let scalar = self.scalar(sets::NUMBERS)?;
        let is_extreme = matches!(self.instruction.opcode, Opcode::Min | Opcode::Max);
        if is_extreme {
            self.extreme_suffixes(scalar)?;
        } else {
            self.suffixes(scalar)?;
        }
        self.integer_suffixes(scalar)?;
        if let Some(narrow) = self.instruction.types().nth(1) {
            self.count(3..=3)?;
            self.destination(0, scalar, Width::Exact)?;
            self.source(1, narrow, Width::Exact)?;
            return self.source(2, scalar, Width::Exact);
        }
        let max_sources = if is_extreme && scalar == ScalarType::F32 {
            3
        } else {
            2
        };
        self.uniform(scalar, 2..=max_sources)
    }

    /// `mul` and `mad`.
    pub(super) fn product(&self) -> Result<(), Error> {
        let scalar = self.scalar(sets::PRODUCTS)?;
        let is_mad = self.instruction.opcode == Opcode::Mad;
        let sources = if is_mad { 3 } else { 2 };
        let half = [Modifier::Lo, Modifier::Hi, Modifier::Wide]
            .into_iter()
            .find(|half| self.has(*half));
        if scalar.class() == ScalarClass::Float {
            if half.is_some() {
                return Err(self.error(format!(
                    "'.lo', '.hi' and '.wide' require an integer type (found .{})",
                    scalar.name()
                )));
            }
            self.suffixes(scalar)?;
            if is_mad && !self.has_rounding() {
                return Err(self.error(MISSING_ROUNDING));
            }
            return self.uniform(scalar, sources..=sources);
        }
        let Some(half) = half else {
            return Err(self.error(format!(
                "'.lo', '.hi' or '.wide' is required for .{}",
                scalar.name()
            )));
        };
        self.integer_suffixes(scalar)?;
        if half != Modifier::Wide {
            return self.uniform(scalar, sources..=sources);
        }
        let wide = match scalar {
            ScalarType::U16 => ScalarType::U32,
            ScalarType::S16 => ScalarType::S32,
            ScalarType::U32 => ScalarType::U64,
            ScalarType::S32 => ScalarType::S64,
            _ => {
                return Err(self.error(format!(
                    "'.wide' requires a 16-bit or 32-bit type (found .{})",
                    scalar.name()
                )));
            }
        };
        self.count(sources + 1..=sources + 1)?;
        self.destination(0, wide, Width::Exact)?;
        self.source(1, scalar, Width::Exact)?;
        self.source(2, scalar, Width::Exact)?;
        if is_mad {
            self.source(3, wide, Width::Exact)
        } else {
            Ok(())
        }
    }

    /// Checks that a sum or product of integers has a carry only with 32 and 64 bits, and saturates only as `.s32`.
    fn integer_suffixes(&self, scalar: ScalarType) -> Result<(), Error> {
        if scalar.class() == ScalarClass::Float {
            return Ok(());
        }
        let opcode = self.instruction.opcode;
        let is_sum = matches!(opcode, Opcode::Add | Opcode::Sub);
        let is_mad = opcode == Opcode::Mad && !self.has(Modifier::Wide);
        let carries = self.has(Modifier::Carry);
        let saturates = self.has(Modifier::Saturate);
        let is_wide_enough = matches!(scalar.bits(), 32 | 64)
            && !matches!(scalar, ScalarType::U16x2 | ScalarType::S16x2);
        if carries && !((is_sum || is_mad) && is_wide_enough && !saturates) {
            return Err(self.unsupported_suffix("'.cc'", scalar));
        }
        if saturates && !(scalar == ScalarType::S32 && (is_sum || is_mad && self.has(Modifier::Hi)))
        {
            return Err(self.unsupported_suffix("'.sat'", scalar));
        }
        Ok(())
    }

    fn unsupported_suffix(&self, suffix: &str, scalar: ScalarType) -> Error {
        self.error(format!(
            "{suffix} is not supported here for .{}",
            scalar.name()
        ))
    }

    /// `fma`. A second type is that of the narrower factors.
    pub(super) fn fused(&self) -> Result<(), Error> {
        let scalar = self.scalar(sets::FLOATS)?;
        if !self.has_rounding() {
            return Err(self.error(MISSING_ROUNDING));
        }
        self.suffixes(scalar)?;
        let factor = self.instruction.types().nth(1).unwrap_or(scalar);
        self.count(4..=4)?;
        self.destination(0, scalar, Width::Exact)?;
        self.source(1, factor, Width::Exact)?;
        self.source(2, factor, Width::Exact)?;
        self.source(3, scalar, Width::Exact)
    }

    /// Checks the rounding, flushing and saturation of a sum or a product of floating-point numbers.
    fn suffixes(&self, scalar: ScalarType) -> Result<(), Error> {
        use ScalarType::{Bf16, Bf16x2, F16, F16x2, F32, F32x2};
        if scalar.class() != ScalarClass::Float {
            return Ok(());
        }
        let relu = self.has_keyword(Keyword::Relu);
        let oob = self.has_keyword(Keyword::Oob);
        let is_half = matches!(scalar, F16 | F16x2);
        let is_brain = matches!(scalar, Bf16 | Bf16x2);
        let is_mixed = self.instruction.types().nth(1).is_some();
        let flushes = is_half || matches!(scalar, F32 | F32x2) && !is_mixed;
        let saturates = is_half || scalar == F32;
        let is_fused = self.instruction.opcode == Opcode::Fma;
        let clamps = is_fused && (is_half || is_brain) && !self.has(Modifier::Saturate);
        let flags = [
            (self.has(Modifier::FlushToZero), flushes && !oob, "'.ftz'"),
            (self.has(Modifier::Saturate), saturates && !oob, "'.sat'"),
            (relu, clamps, "'.relu'"),
            (oob, clamps, "'.oob'"),
        ];
        self.check_flags(&flags, scalar)?;
        let is_directed = [Rounding::Zero, Rounding::Up, Rounding::Down]
            .into_iter()
            .any(|rounding| self.has(Modifier::Round(rounding)));
        if is_directed && (is_half || is_brain && !is_fused) {
            return Err(self.error(format!(
                "unsupported rounding for .{} (expected '.rn')",
                scalar.name()
            )));
        }
        Ok(())
    }

    /// Checks suffixes, each with its presence, the condition under which it is allowed, and its name.
    fn check_flags(&self, flags: &[(bool, bool, &str)], scalar: ScalarType) -> Result<(), Error> {
        for (is_present, is_allowed, name) in flags {
            if *is_present && !is_allowed {
                return Err(self.unsupported_suffix(name, scalar));
            }
        }
        Ok(())
    }

    /// Checks the suffixes of `min` and `max`.
    fn extreme_suffixes(&self, scalar: ScalarType) -> Result<(), Error> {
        use ScalarType::{Bf16, Bf16x2, F16, F16x2, F32, S16x2, S32};
        let has_abs = self.has_keyword(Keyword::Abs);
        let has_xorsign = self.has_keyword(Keyword::Xorsign);
        let is_float = matches!(scalar, F16 | F16x2 | F32 | Bf16 | Bf16x2);
        let has_three_sources = self.spans.len() == 4;
        let flags = [
            (
                self.has(Modifier::FlushToZero),
                matches!(scalar, F16 | F16x2 | F32),
                "'.ftz'",
            ),
            (self.has(Modifier::Nan), is_float, "'.NaN'"),
            (
                has_xorsign,
                is_float && !has_three_sources && has_abs,
                "'.xorsign' without '.abs'",
            ),
            (
                has_abs,
                has_three_sources || has_xorsign,
                "'.abs' without '.xorsign'",
            ),
            (
                self.has_keyword(Keyword::Relu),
                matches!(scalar, S16x2 | S32),
                "'.relu'",
            ),
        ];
        self.check_flags(&flags, scalar)
    }

    /// `setp`
    pub(super) fn compare(&self) -> Result<(), Error> {
        let scalar = self.scalar(sets::COMPARED)?;
        self.comparison(scalar)?;
        let combines = self.combines();
        let count = if combines { 4 } else { 3 };
        self.count(count..=count)?;
        match self.operand(0) {
            Operand::Pair(..) if matches!(scalar, ScalarType::F16 | ScalarType::Bf16) => {
                return Err(
                    self.operand_error(0, format!("one predicate register for .{}", scalar.name()))
                );
            }
            Operand::Pair(first, second) => {
                let mut registers = first.iter().chain(second);
                if !registers.all(|id| self.register(*id) == ScalarType::Pred) {
                    return Err(self.operand_error(0, "a pair of predicate registers"));
                }
            }
            _ => self.destination(0, ScalarType::Pred, Width::Exact)?,
        }
        self.source(1, scalar, Width::Exact)?;
        self.source(2, scalar, Width::Exact)?;
        if combines {
            self.source(3, ScalarType::Pred, Width::Exact)
        } else {
            Ok(())
        }
    }

    /// `set`. A comparison of packed numbers has a packed result, or a mask of 32 bits.
    pub(super) fn set(&self) -> Result<(), Error> {
        use ScalarType as S;
        let to = self.scalar(sets::SET)?;
        let from = self.member(self.instruction.types().nth(1), sets::COMPARED)?;
        let is_mask = matches!(to, S::U32 | S::S32);
        let exists = match from {
            S::F16x2 | S::Bf16x2 => is_mask || to == from,
            S::F16 => matches!(to.bits(), 16) || is_mask,
            S::Bf16 => matches!(to.bits(), 16) && to != S::F16 || is_mask,
            _ => is_mask || matches!(to, S::F16 | S::Bf16 | S::F32),
        };
        let flushes = self.has(Modifier::FlushToZero);
        if !exists || flushes && to == S::Bf16 {
            return Err(self.error(format!(
                "unsupported combination of types ({})",
                type_list(&[to, from])
            )));
        }
        self.comparison(from)?;
        let count = if self.combines() { 4 } else { 3 };
        self.count(count..=count)?;
        self.destination(0, to, Width::Exact)?;
        self.source(1, from, Width::Exact)?;
        self.source(2, from, Width::Exact)?;
        if count == 4 {
            self.source(3, S::Pred, Width::Exact)
        } else {
            Ok(())
        }
    }

    /// Returns `true` if a comparison is combined with a predicate.
    fn combines(&self) -> bool {
        self.has_operation(Operation::And)
            || self.has_operation(Operation::Or)
            || self.has_operation(Operation::Xor)
    }

    /// Checks that the instruction has a comparison, and that it suits the type.
    fn comparison(&self, scalar: ScalarType) -> Result<(), Error> {
        use Compare as C;
        if self.has(Modifier::FlushToZero)
            && !matches!(
                scalar,
                ScalarType::F16 | ScalarType::F16x2 | ScalarType::F32
            )
        {
            return Err(self.unsupported_suffix("'.ftz'", scalar));
        }
        let comparison = self
            .instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Compare(compare) => Some(*compare),
                _ => None,
            });
        let Some(comparison) = comparison else {
            return Err(self.error("missing comparison, such as '.lt'"));
        };
        let suits = match comparison {
            C::Equal | C::NotEqual => true,
            C::Less | C::LessEqual | C::Greater | C::GreaterEqual => {
                scalar.class() != ScalarClass::Bits
            }
            C::Lower | C::LowerSame | C::Higher | C::HigherSame => {
                scalar.class() == ScalarClass::Unsigned
            }
            _ => scalar.class() == ScalarClass::Float,
        };
        if suits {
            return Ok(());
        }
        Err(self.error(format!(
            "comparison '.{}' is not supported for .{}",
            comparison.name(),
            scalar.name()
        )))
    }

    /// `selp`
    pub(super) fn select(&self) -> Result<(), Error> {
        let scalar = self.scalar(sets::SELECTED)?;
        self.count(4..=4)?;
        self.destination(0, scalar, Width::Exact)?;
        self.source(1, scalar, Width::Exact)?;
        self.source(2, scalar, Width::Exact)?;
        self.source(3, ScalarType::Pred, Width::Exact)
    }
}
