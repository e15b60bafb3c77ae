//! Loads, stores and atomics.

use super::{Context, Width, sets};
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
        self.manner(scalar, self.vector())?;
        self.elements(0, scalar, Width::Relaxed)?;
        self.address(1)?;
        self.cache_policy(2)
    }

    /// `st`
    pub(super) fn store(&self) -> Result<(), Error> {
        if self.has(Modifier::Keyword(Keyword::Bulk)) {
            return Ok(());
        }
        if self.has(Modifier::Keyword(Keyword::Async)) {
            return self.asynchronous(sets::ASYNCHRONOUS);
        }
        let scalar = self.scalar(sets::STORED)?;
        let hint = usize::from(self.has(Modifier::CacheHint));
        self.count(2 + hint..=2 + hint)?;
        self.manner(scalar, self.vector())?;
        let is_constant = self.has(Modifier::Space(Space::Const));
        if is_constant {
            return Err(self.lacks("memory that can be written"));
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
        if self.has(Modifier::Keyword(Keyword::Async)) {
            return self.asynchronous_reduction();
        }
        if [Operation::Exchange, Operation::CompareAndSwap]
            .into_iter()
            .any(|it| self.has(Modifier::Operation(it)))
        {
            return Err(self.lacks("an operation without a result, such as '.add'"));
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
        let operation = self
            .instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Operation(operation) => Some(*operation),
                _ => None,
            });
        let allowed = match operation {
            Some(Operation::Add) if self.vector() > 1 => sets::ATOMIC_VECTOR_SUMS,
            Some(Operation::Min | Operation::Max) if self.vector() > 1 => {
                sets::ATOMIC_VECTOR_EXTREMES
            }
            _ if self.vector() > 1 => {
                return Err(self.lacks("'.add', '.min' or '.max' with vectors"));
            }
            Some(Operation::And | Operation::Or | Operation::Xor) => sets::ATOMIC_LOGIC,
            Some(Operation::Add) => sets::ATOMIC_SUMS,
            Some(Operation::Min | Operation::Max) => sets::ATOMIC_EXTREMES,
            Some(Operation::Increment | Operation::Decrement) => sets::ATOMIC_COUNTERS,
            Some(Operation::Exchange) => sets::ATOMIC_EXCHANGES,
            Some(Operation::CompareAndSwap) => sets::ATOMIC_SWAPS,
            _ => return Err(self.lacks("an operation such as '.add'")),
        };
        let scalar = self.scalar(allowed)?;
        let is_half = matches!(
            scalar,
            ScalarType::F16 | ScalarType::F16x2 | ScalarType::Bf16 | ScalarType::Bf16x2
        );
        if is_half != self.has(Modifier::Keyword(Keyword::Noftz)) {
            return Err(self.lacks("'.noftz' with numbers of 16 bits, and only with them"));
        }
        self.atomic_vector(scalar)?;
        Ok((
            scalar,
            if operation == Some(Operation::CompareAndSwap) {
                2
            } else {
                1
            },
        ))
    }

    /// Checks the space of an atomic, and the number of elements of a vector.
    fn atomic_vector(&self, scalar: ScalarType) -> Result<(), Error> {
        let most = if scalar.bits() == 16 { 8 } else { 4 };
        if self.vector() > most {
            return Err(self.lacks(format!("at most {most} elements of .{}", scalar.name())));
        }
        let (space, is_vector) = (self.space(), self.vector() > 1);
        let is_shared = matches!(
            space,
            Some(Space::Shared | Space::SharedCta | Space::SharedCluster)
        );
        if is_vector && is_shared {
            return Err(self.lacks("'.global' with vectors"));
        }
        if is_shared || matches!(space, None | Some(Space::Global)) {
            return Ok(());
        }
        Err(self.lacks("memory that other threads share"))
    }

    /// Returns the number of elements that the instruction moves.
    pub(super) fn vector(&self) -> usize {
        let vector = self
            .instruction
            .modifiers
            .iter()
            .find_map(|modifier| match modifier {
                Modifier::Vector(count) => Some(usize::from(*count)),
                _ => None,
            });
        vector.unwrap_or(1)
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
        let expected = || format!("a vector of {vector} registers for .{}", scalar.name());
        match self.operand(index) {
            Operand::Vector(elements) if elements.len() == vector => {
                // Only the widths of vector elements are compared: `ld.v2.u32` may load registers of type .f32.
                let wide_enough = |id| self.register(id).bits() >= scalar.bits();
                let fits = elements.iter().all(|element| match element {
                    Operand::Sink => is_written,
                    Operand::Register(id) => {
                        self.register(*id) != ScalarType::Pred && wide_enough(*id)
                    }
                    Operand::Element(id, _) => wide_enough(*id),
                    _ => !is_written && self.value_fits(element, scalar, width),
                });
                if fits {
                    Ok(())
                } else {
                    Err(self.wrong(index, expected()))
                }
            }
            Operand::Register(id) => {
                let register = &self.function.registers[id.0 as usize];
                let fits = usize::from(register.vector) == vector
                    && register.scalar.bits() >= scalar.bits();
                if fits {
                    Ok(())
                } else {
                    Err(self.wrong(index, expected()))
                }
            }
            _ => Err(self.wrong(index, expected())),
        }
    }

    /// Checks a memory operand.
    pub(super) fn address(&self, index: usize) -> Result<(), Error> {
        let Operand::Address(Address { base, .. }) = self.operand(index) else {
            return Err(self.wrong(index, "an address in brackets"));
        };
        let id = match base {
            Base::Register(id) => id,
            Base::Symbol(symbol) => return self.space_of_address(index, *symbol),
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
        let found = self.describe(&Operand::Register(*id));
        Err(Error::syntax(
            self.spans[index],
            format!("an address in a register of {widths} bits"),
            found,
        ))
    }

    /// Checks that a variable lies in the space that the instruction names. Without a space, it is one with generic addresses.
    pub(super) fn space_of_address(&self, index: usize, symbol: Symbol) -> Result<(), Error> {
        use Space as S;
        let wanted = self.space();
        let fits = match self.space_of(symbol) {
            None => false,
            Some(S::Shared) => {
                matches!(
                    wanted,
                    None | Some(S::Shared | S::SharedCta | S::SharedCluster)
                )
            }
            Some(S::Param) => matches!(wanted, Some(S::Param | S::ParamEntry | S::ParamFunction)),
            Some(S::Const) => wanted == Some(S::Const),
            space => wanted.is_none() || wanted == space,
        };
        if fits {
            return Ok(());
        }
        let expected = match wanted {
            Some(space) => format!("a variable in '.{}'", space.name()),
            None => "a variable in '.global', '.shared' or '.local'".into(),
        };
        Err(self.wrong(index, expected))
    }

    /// Returns the state space of a variable, or `None` for a function.
    pub(super) fn space_of(&self, symbol: Symbol) -> Option<Space> {
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
