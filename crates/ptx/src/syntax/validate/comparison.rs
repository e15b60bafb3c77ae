//! Comparisons and selections.

use super::{Context, Width, sets, type_list};
use crate::syntax::error::Error;
use crate::syntax::modifier::{Compare, Modifier, Operation};
use crate::syntax::operand::Operand;
use crate::syntax::scalar::{ScalarClass, ScalarType};

impl Context<'_> {
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
            return Err(self.error(format!(
                "'.ftz' is not supported here for .{}",
                scalar.name()
            )));
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
