//! Loads, stores and atomics.

use super::{Context, MISSING_OPERATION, Width, sets};
use crate::syntax::error::Error;
use crate::syntax::keyword::Keyword;
use crate::syntax::modifier::{Modifier, Operation, Space};
use crate::syntax::operand::{Address, Base, Operand, Symbol};
use crate::syntax::scalar::{ScalarClass, ScalarType};

impl Context<'_> {
    /// `ld`
    pub(super) fn load(&self) -> Result<(), Error> {
        let scalar = self.scalar(sets::STORED)?;
        let hint = usize::from(self.has(Modifier::CacheHint));
        self.count(2 + hint..=2 + hint)?;
        self.access_suffixes(scalar, self.vector())?;
        self.elements(0, scalar, Width::Relaxed)?;
        self.address(1)?;
        self.cache_policy(2)
    }

    /// `st`
    pub(super) fn store(&self) -> Result<(), Error> {
        if self.has_keyword(Keyword::Bulk) {
            return Ok(());
        }
        if self.has_keyword(Keyword::Async) {
            return self.asynchronous(sets::ASYNCHRONOUS);
        }
        let scalar = self.scalar(sets::STORED)?;
        let hint = usize::from(self.has(Modifier::CacheHint));
        self.count(2 + hint..=2 + hint)?;
        self.access_suffixes(scalar, self.vector())?;
        if self.has(Modifier::Space(Space::Const)) {
            return Err(self.error("'.const' memory is read-only"));
        }
        self.address(0)?;
        self.elements(1, scalar, Width::Relaxed)?;
        self.cache_policy(2)
    }

    /// `atom`
    pub(super) fn atomic(&self) -> Result<(), Error> {
        let (scalar, sources) = self.atomic_operation()?;
        let count = 2 + sources + usize::from(self.has(Modifier::CacheHint));
        self.count(count..=count)?;
        if !matches!(self.operand(0), Operand::Sink) {
            self.elements(0, scalar, Width::Exact)?;
        }
        self.address(1)?;
        (2..2 + sources).try_for_each(|index| self.elements(index, scalar, Width::Exact))?;
        self.cache_policy(2 + sources)
    }

    /// `red`
    pub(super) fn reduction(&self) -> Result<(), Error> {
        if self.has_keyword(Keyword::Async) {
            return self.asynchronous_reduction();
        }
        if let Some(operation @ (Operation::Exchange | Operation::CompareAndSwap)) =
            self.operation()
        {
            return Err(self.error(format!("'.{}' requires 'atom'", operation.name())));
        }
        let (scalar, _) = self.atomic_operation()?;
        let count = 2 + usize::from(self.has(Modifier::CacheHint));
        self.count(count..=count)?;
        self.address(0)?;
        self.elements(1, scalar, Width::Exact)?;
        self.cache_policy(2)
    }

    /// Returns the type of an atomic, and the number of its operands besides the one in memory.
    fn atomic_operation(&self) -> Result<(ScalarType, usize), Error> {
        let operation = self.operation();
        let allowed = match operation {
            Some(Operation::Add) if self.vector() > 1 => sets::ATOMIC_VECTOR_SUMS,
            Some(Operation::Min | Operation::Max) if self.vector() > 1 => {
                sets::ATOMIC_VECTOR_EXTREMES
            }
            _ if self.vector() > 1 => {
                return Err(self.error("vectors require '.add', '.min' or '.max'"));
            }
            Some(Operation::And | Operation::Or | Operation::Xor) => sets::ATOMIC_LOGIC,
            Some(Operation::Add) => sets::ATOMIC_SUMS,
            Some(Operation::Min | Operation::Max) => sets::ATOMIC_EXTREMES,
            Some(Operation::Increment | Operation::Decrement) => sets::ATOMIC_COUNTERS,
            Some(Operation::Exchange) => sets::ATOMIC_EXCHANGES,
            Some(Operation::CompareAndSwap) => sets::ATOMIC_SWAPS,
            _ => return Err(self.error(MISSING_OPERATION)),
        };
        let scalar = self.scalar(allowed)?;
        let is_half = matches!(
            scalar,
            ScalarType::F16 | ScalarType::F16x2 | ScalarType::Bf16 | ScalarType::Bf16x2
        );
        let has_noftz = self.has_keyword(Keyword::Noftz);
        if is_half && !has_noftz {
            return Err(self.error(format!("'.noftz' is required for .{}", scalar.name())));
        }
        if has_noftz && !is_half {
            return Err(self.error(format!("'.noftz' is not supported for .{}", scalar.name())));
        }
        self.atomic_vector(scalar)?;
        let sources = if operation == Some(Operation::CompareAndSwap) {
            2
        } else {
            1
        };
        Ok((scalar, sources))
    }

    pub(super) fn operation(&self) -> Option<Operation> {
        self.find(|modifier| match modifier {
            Modifier::Operation(operation) => Some(operation),
            _ => None,
        })
    }

    /// Checks the space of an atomic, and the number of elements of a vector.
    fn atomic_vector(&self, scalar: ScalarType) -> Result<(), Error> {
        let count = self.vector();
        let max_count = if scalar.bits() == 16 { 8 } else { 4 };
        if count > max_count {
            return Err(self.error(format!(
                "too many elements of .{} (maximum {max_count}, found {count})",
                scalar.name()
            )));
        }
        match self.space() {
            None | Some(Space::Global) => Ok(()),
            Some(Space::Shared | Space::SharedCta | Space::SharedCluster) if count == 1 => Ok(()),
            Some(Space::Shared | Space::SharedCta | Space::SharedCluster) => {
                Err(self.error("vectors require '.global'"))
            }
            Some(space) => Err(self.error(format!("unsupported state space '.{}'", space.name()))),
        }
    }

    /// Returns the number of elements that the instruction moves.
    pub(super) fn vector(&self) -> usize {
        let count = self.find(|modifier| match modifier {
            Modifier::Vector(count) => Some(usize::from(count)),
            _ => None,
        });
        count.unwrap_or(1)
    }

    /// Checks the data operand, which must have as many elements as the instruction.
    pub(super) fn elements(
        &self,
        index: usize,
        scalar: ScalarType,
        width: Width,
    ) -> Result<(), Error> {
        let is_written = index == 0;
        let vector = self.vector();
        if vector == 1 {
            return if is_written {
                self.destination(index, scalar, width)
            } else {
                self.source(index, scalar, width)
            };
        }
        let is_valid = match self.operand(index) {
            // Only the widths of vector elements are compared: `ld.v2.u32` may load registers of
            // type .f32.
            Operand::Vector(elements) if elements.len() == vector => {
                elements.iter().all(|element| match element {
                    Operand::Sink => is_written,
                    Operand::Register(id) => {
                        let register = self.register(*id);
                        register != ScalarType::Pred && register.bits() >= scalar.bits()
                    }
                    Operand::Element(id, _) => self.register(*id).bits() >= scalar.bits(),
                    _ => !is_written && self.value_fits(element, scalar, width),
                })
            }
            Operand::Register(id) => {
                let register = &self.function.registers[id.0 as usize];
                usize::from(register.vector) == vector && register.scalar.bits() >= scalar.bits()
            }
            _ => false,
        };
        if is_valid {
            return Ok(());
        }
        Err(self.operand_error(
            index,
            format!("a vector of {vector} registers for .{}", scalar.name()),
        ))
    }

    /// Checks a memory operand.
    pub(super) fn address(&self, index: usize) -> Result<(), Error> {
        let Operand::Address(Address { base, .. }) = self.operand(index) else {
            return Err(self.operand_error(index, "an address in brackets"));
        };
        let id = match base {
            Base::Register(id) => id,
            Base::Symbol(symbol) => return self.variable_space(index, *symbol),
            Base::Absolute => return Ok(()),
        };
        let register = self.register(*id);
        let is_small = self.instruction.modifiers.iter().any(|modifier| {
            let Modifier::Space(space) = modifier else {
                return false;
            };
            !matches!(space, Space::Global)
        });
        let is_integer = register.is_integer_like() && register.class() != ScalarClass::Predicate;
        if is_integer && (register.bits() == 64 || is_small && register.bits() == 32) {
            return Ok(());
        }
        let widths = if is_small { "32 or 64" } else { "64" };
        Err(self.operand_mismatch(
            index,
            format!("an address in a register of {widths} bits"),
            &self.describe_register(*id),
        ))
    }

    /// Checks that a variable lies in the space that the instruction names. Without a space, it is
    /// one with generic addresses.
    pub(super) fn variable_space(&self, index: usize, symbol: Symbol) -> Result<(), Error> {
        use Space as S;
        let space = self.space();
        let is_valid = match self.symbol_space(symbol) {
            None => false,
            Some(S::Shared) => {
                matches!(
                    space,
                    None | Some(S::Shared | S::SharedCta | S::SharedCluster)
                )
            }
            Some(S::Param) => matches!(space, Some(S::Param | S::ParamEntry | S::ParamFunction)),
            Some(S::Const) => space == Some(S::Const),
            declared => space.is_none() || space == declared,
        };
        if is_valid {
            return Ok(());
        }
        let expected = match space {
            Some(space) => format!("a variable in '.{}'", space.name()),
            None => "a variable in '.global', '.shared' or '.local'".into(),
        };
        Err(self.operand_error(index, expected))
    }

    /// Returns the state space of a variable, or `None` for a function.
    pub(super) fn symbol_space(&self, symbol: Symbol) -> Option<Space> {
        match symbol {
            Symbol::Global(id) => Some(self.module.variable(id).space),
            Symbol::Local(id) => Some(self.function.variables[id.0 as usize].space),
            Symbol::Function(_) => None,
        }
    }

    /// Checks the cache policy after the other operands, if there is one.
    fn cache_policy(&self, index: usize) -> Result<(), Error> {
        if self.has(Modifier::CacheHint) {
            self.source(index, ScalarType::B64, Width::Exact)
        } else {
            Ok(())
        }
    }
}
