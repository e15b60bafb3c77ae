//! Multicast memory (`multimem`): loads that reduce, stores, reductions and bulk copies.

use super::{Context, MISSING_OPERATION, Width, sets};
use crate::syntax::error::Error;
use crate::syntax::keyword::Keyword;
use crate::syntax::modifier::{Modifier, Operation, Scope, Semantics, Space};
use crate::syntax::operand::Operand;
use crate::syntax::scalar::{ScalarClass, ScalarType};

/// The limits of an access to floating-point numbers of at most 32 bits, in bits.
const MIN_BITS: u32 = 32;
const MAX_BITS: u32 = 128;

/// The granularity of bulk copies in bytes.
const BULK_BYTES: u64 = 16;

/// The operations on multicast memory that access a value or a vector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    LoadReduce,
    Store,
    Reduce,
}

/// The suffixes of an access, each of which occurs at most once.
#[derive(Default)]
struct Suffixes {
    semantics: Option<Semantics>,
    scope: Option<Scope>,
    space: Option<Space>,
    operation: Option<Operation>,
    precision: Option<Keyword>,
    vector: Option<u8>,
    scalar: Option<ScalarType>,
}

impl Context<'_> {
    /// `multimem`
    pub(super) fn multicast(&self) -> Result<(), Error> {
        use Keyword as K;
        use Modifier::Keyword as Word;
        match &self.instruction.modifiers[..] {
            [Word(K::LdReduce), suffixes @ ..] => {
                self.multicast_access(Access::LoadReduce, suffixes)
            }
            [Word(K::St), suffixes @ ..] => self.multicast_access(Access::Store, suffixes),
            [Word(K::Red), suffixes @ ..] => self.multicast_access(Access::Reduce, suffixes),
            [Word(K::Cp), Word(K::Async), Word(K::Bulk), suffixes @ ..] => {
                self.multicast_copy(suffixes)
            }
            [
                Word(K::Cp),
                Word(K::Reduce),
                Word(K::Async),
                Word(K::Bulk),
                suffixes @ ..,
            ] => self.multicast_reduction(suffixes),
            _ => Err(self.error(
                "expected '.ld_reduce', '.st', '.red', '.cp.async.bulk' or '.cp.reduce.async.bulk'",
            )),
        }
    }

    fn multicast_access(&self, access: Access, suffixes: &[Modifier]) -> Result<(), Error> {
        let suffixes = self.multicast_suffixes(access, suffixes)?;
        if !matches!(suffixes.space, None | Some(Space::Global)) {
            return Err(self.error("the state space must be '.global'"));
        }
        self.multicast_order(access, &suffixes)?;
        let scalar = self.scalar(self.multicast_types(access, suffixes.operation)?)?;
        self.multicast_width(access, &suffixes, scalar)?;
        if access == Access::LoadReduce {
            self.multicast_precision(&suffixes, scalar)?;
        }
        self.count(2..=2)?;
        let (data, address) = match access {
            Access::LoadReduce => (0, 1),
            Access::Store | Access::Reduce => (1, 0),
        };
        self.address(address)?;
        match suffixes.vector {
            Some(count) => self.multicast_vector(data, usize::from(count), scalar),
            None if data == 0 => self.destination(data, scalar, Width::Exact),
            None => self.source(data, scalar, Width::Exact),
        }
    }

    fn multicast_suffixes(
        &self,
        access: Access,
        modifiers: &[Modifier],
    ) -> Result<Suffixes, Error> {
        let mut suffixes = Suffixes::default();
        for modifier in modifiers {
            let is_first = match *modifier {
                Modifier::Semantics(semantics) => suffixes.semantics.replace(semantics).is_none(),
                Modifier::Scope(scope) => suffixes.scope.replace(scope).is_none(),
                Modifier::Space(space) => suffixes.space.replace(space).is_none(),
                Modifier::Operation(operation) if access != Access::Store => {
                    suffixes.operation.replace(operation).is_none()
                }
                Modifier::Keyword(precision @ (Keyword::AccF16 | Keyword::AccF32)) => {
                    suffixes.precision.replace(precision).is_none()
                }
                Modifier::Vector(count) => suffixes.vector.replace(count).is_none(),
                Modifier::Type(scalar) => suffixes.scalar.replace(scalar).is_none(),
                other => return Err(self.error(format!("unsupported suffix '.{other}'"))),
            };
            if !is_first {
                return Err(
                    self.error(format!("more than one suffix of the kind of '.{modifier}'"))
                );
            }
        }
        Ok(suffixes)
    }

    /// Checks that an access has a scope if it is strong.
    fn multicast_order(&self, access: Access, suffixes: &Suffixes) -> Result<(), Error> {
        let strongest = match access {
            Access::LoadReduce => Semantics::Acquire,
            Access::Store | Access::Reduce => Semantics::Release,
        };
        let requires_scope = match suffixes.semantics {
            None => false,
            Some(Semantics::Weak) if access != Access::Reduce => false,
            Some(semantics) if semantics == Semantics::Relaxed || semantics == strongest => true,
            Some(semantics) => {
                return Err(self.error(format!("unsupported semantics '.{}'", semantics.name())));
            }
        };
        match suffixes.scope {
            None if requires_scope => Err(self.error("missing scope, such as '.sys'")),
            Some(_) if !requires_scope => {
                Err(self.error("a scope requires semantics, such as '.relaxed'"))
            }
            _ => Ok(()),
        }
    }

    fn multicast_types(
        &self,
        access: Access,
        operation: Option<Operation>,
    ) -> Result<&'static [ScalarType], Error> {
        let loads = access == Access::LoadReduce;
        Ok(match operation {
            None if access == Access::Store => sets::MULTICAST_STORED,
            None => return Err(self.error(MISSING_OPERATION)),
            Some(Operation::Add) if loads => sets::MULTICAST_LOADED_SUMS,
            Some(Operation::Add) => sets::ATOMIC_SUMS,
            Some(Operation::Min | Operation::Max) if loads => sets::MULTICAST_LOADED_EXTREMES,
            Some(Operation::Min | Operation::Max) => sets::MULTICAST_EXTREMES,
            Some(Operation::And | Operation::Or | Operation::Xor) => sets::ATOMIC_LOGIC,
            Some(operation) => {
                return Err(self.error(format!("unsupported operation '.{}'", operation.name())));
            }
        })
    }

    /// Checks the number of elements: floating-point numbers of at most 32 bits form accesses of 32
    /// to 128 bits, others are single.
    fn multicast_width(
        &self,
        access: Access,
        suffixes: &Suffixes,
        scalar: ScalarType,
    ) -> Result<(), Error> {
        if !is_narrow_float(scalar) {
            return match suffixes.vector {
                Some(_) => {
                    Err(self.error(format!("vectors of .{} are not supported", scalar.name())))
                }
                None => Ok(()),
            };
        }
        let bits = scalar.bits() * u32::from(suffixes.vector.unwrap_or(1));
        if !(MIN_BITS..=MAX_BITS).contains(&bits) {
            return Err(self.error(format!(
                "unsupported width of the access (expected {MIN_BITS} to {MAX_BITS} bits, found {bits})"
            )));
        }
        let is_extreme = matches!(suffixes.operation, Some(Operation::Min | Operation::Max));
        if access == Access::Reduce && is_extreme && suffixes.vector.is_none() {
            return Err(self.error("'.min' and '.max' require a vector"));
        }
        Ok(())
    }

    /// Checks the precision in which a load adds.
    fn multicast_precision(&self, suffixes: &Suffixes, scalar: ScalarType) -> Result<(), Error> {
        use ScalarType as T;
        let Some(precision) = suffixes.precision else {
            return Ok(());
        };
        let is_half = matches!(scalar, T::F16 | T::F16x2 | T::Bf16 | T::Bf16x2);
        let is_narrower = is_narrow_float(scalar) && !is_half && scalar != T::F32;
        let is_wider = match precision {
            Keyword::AccF32 => is_half,
            _ => is_narrower,
        };
        if is_wider && suffixes.operation == Some(Operation::Add) {
            return Ok(());
        }
        Err(self.error(format!(
            "'.{}' is supported only for sums of narrower types",
            precision.name()
        )))
    }

    /// Checks a vector operand. A source may have numbers in place of registers, except for the
    /// first element of a packed type.
    fn multicast_vector(
        &self,
        index: usize,
        count: usize,
        scalar: ScalarType,
    ) -> Result<(), Error> {
        let is_written = index == 0;
        let elements = match self.operand(index) {
            Operand::Vector(elements) if elements.len() == count => elements,
            _ => {
                return Err(self.operand_error(index, format!("a vector of {count} registers")));
            }
        };
        let mut has_register = false;
        for (position, element) in elements.iter().enumerate() {
            let is_valid = match element {
                Operand::Register(id) => {
                    has_register = true;
                    self.register_fits(*id, scalar, Width::Exact)
                }
                Operand::Element(id, _) => {
                    has_register = true;
                    self.element_fits(*id, scalar, Width::Exact)
                }
                Operand::Sink => is_written,
                Operand::Single(_) | Operand::Double(_) => {
                    !is_written && (scalar == ScalarType::F32 || position > 0)
                }
                Operand::Integer(_) => !is_written && scalar != ScalarType::F32 && position > 0,
                _ => false,
            };
            if !is_valid {
                return Err(self.operand_error(
                    index,
                    format!("a vector of {count} registers for .{}", scalar.name()),
                ));
            }
        }
        if !has_register {
            return Err(self.operand_error(index, "a vector with a register"));
        }
        Ok(())
    }

    /// `multimem.cp.async.bulk`
    fn multicast_copy(&self, suffixes: &[Modifier]) -> Result<(), Error> {
        let has_mask = self.has_keyword(Keyword::CpMask);
        self.multicast_bulk(suffixes, |modifier| {
            modifier == Modifier::Keyword(Keyword::CpMask)
        })?;
        let count = 3 + usize::from(has_mask);
        self.count(count..=count)?;
        self.multicast_bulk_operands()?;
        if has_mask {
            self.source(3, ScalarType::B16, Width::Exact)?;
        }
        Ok(())
    }

    /// `multimem.cp.reduce.async.bulk`
    fn multicast_reduction(&self, suffixes: &[Modifier]) -> Result<(), Error> {
        use Operation as O;
        self.multicast_bulk(suffixes, |modifier| {
            matches!(
                modifier,
                Modifier::Operation(_) | Modifier::Type(_) | Modifier::Keyword(Keyword::Noftz)
            )
        })?;
        let operation = self.operation();
        let scalar = self.scalar(match operation {
            Some(O::Add) => sets::BULK_SUMS,
            Some(O::Min | O::Max) => sets::BULK_EXTREMES,
            Some(O::Increment | O::Decrement) => sets::ATOMIC_COUNTERS,
            Some(O::And | O::Or | O::Xor) => sets::ATOMIC_LOGIC,
            Some(operation) => {
                return Err(self.error(format!("unsupported operation '.{}'", operation.name())));
            }
            None => return Err(self.error(MISSING_OPERATION)),
        })?;
        let is_half_sum =
            operation == Some(O::Add) && matches!(scalar, ScalarType::F16 | ScalarType::Bf16);
        if is_half_sum != self.has_keyword(Keyword::Noftz) {
            return Err(self.error("'.noftz' is required for sums of .f16 and .bf16 only"));
        }
        self.count(3..=3)?;
        self.multicast_bulk_operands()
    }

    /// Checks the suffixes of a bulk copy from shared to multicast memory, and that the others are
    /// `allowed`, each at most once.
    fn multicast_bulk(
        &self,
        suffixes: &[Modifier],
        allowed: impl Fn(Modifier) -> bool,
    ) -> Result<(), Error> {
        let spaces: Vec<Space> = suffixes
            .iter()
            .filter_map(|modifier| match modifier {
                Modifier::Space(space) => Some(*space),
                _ => None,
            })
            .collect();
        if spaces != [Space::Global, Space::SharedCta] {
            return Err(self.error("the state spaces must be '.global.shared::cta'"));
        }
        if !self.has_keyword(Keyword::BulkGroup) {
            return Err(self.error("'.bulk_group' is required"));
        }
        for (index, modifier) in suffixes.iter().enumerate() {
            let is_known = matches!(
                modifier,
                Modifier::Space(_)
                    | Modifier::Keyword(Keyword::BulkGroup)
                    | Modifier::Semantics(Semantics::Weak)
            );
            let is_repeated = suffixes[..index].iter().any(|earlier| {
                std::mem::discriminant(earlier) == std::mem::discriminant(modifier)
                    && (earlier == modifier
                        || matches!(modifier, Modifier::Type(_) | Modifier::Operation(_)))
            });
            if is_repeated || !is_known && !allowed(*modifier) {
                return Err(self.error(format!("unsupported suffix '.{modifier}'")));
            }
        }
        Ok(())
    }

    /// Checks the addresses and the size of a bulk copy.
    fn multicast_bulk_operands(&self) -> Result<(), Error> {
        for index in [0, 1] {
            if !matches!(self.operand(index), Operand::Address(_)) {
                return Err(self.operand_error(index, "an address in brackets"));
            }
        }
        self.source(2, ScalarType::U32, Width::Exact)?;
        match self.operand(2) {
            Operand::Integer(size) if !size.bits.is_multiple_of(BULK_BYTES) => {
                Err(self.operand_error(2, format!("a multiple of {BULK_BYTES}")))
            }
            _ => Ok(()),
        }
    }
}

/// Returns `true` for a floating-point number of at most 32 bits, or several in 32 bits.
fn is_narrow_float(scalar: ScalarType) -> bool {
    scalar.class() == ScalarClass::Float && scalar.bits() <= 32
}
