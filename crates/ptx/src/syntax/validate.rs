//! Validation of instruction forms.
//!
//! The forms of frequent instructions are checked: the number and kinds of the operands, the required suffixes, and the width of each
//! register against the instruction's type. Other opcodes are accepted here, and the lowering refuses the forms that the simulator does not
//! execute.

mod arithmetic;
mod asynchronous;
mod barrier_object;
mod control;
mod conversion;
mod data;
mod memory;
mod order;
mod rows;
mod sets;
mod since;

use std::ops::RangeInclusive;

pub(super) use self::since::Unmet;
use super::ast::{Function, Instruction, Module, PrototypeParameter};
use super::error::{Error, Span};
use super::modifier::Modifier;
use super::opcode::{Opcode, for_each_opcode};
use super::operand::{Operand, RegisterId};
use super::scalar::{ScalarClass, ScalarType};

/// The return values and parameters of a function.
#[derive(Clone, Default, Debug)]
pub(super) struct Signature {
    pub(super) returns: Vec<PrototypeParameter>,
    pub(super) parameters: Vec<PrototypeParameter>,
}

impl Signature {
    /// Returns `true` if `other` may declare the same function.
    pub(super) fn accepts(&self, other: &Self) -> bool {
        let same = |a: &[PrototypeParameter], b: &[PrototypeParameter]| {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| a.is_register == b.is_register && a.size == b.size)
        };
        same(&self.returns, &other.returns) && same(&self.parameters, &other.parameters)
    }
}

/// An instruction, and the module and function that it refers to.
pub(super) struct Context<'p> {
    pub(super) module: &'p Module,
    pub(super) function: &'p Function,
    pub(super) signatures: &'p [Signature],
    pub(super) instruction: &'p Instruction,
    /// The requirements that the module's version and target do not meet.
    pub(super) unmet: &'p Unmet,
    /// The position of each operand.
    pub(super) spans: &'p [Span],
    /// The position of the semicolon.
    pub(super) end: Span,
}

/// The relation of a register's width to the type of the instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    /// The widths are equal.
    Exact,
    /// The register may be wider: `ld`, `st` and `cvt` extend or truncate.
    Relaxed,
}

impl Context<'_> {
    /// Checks the instruction.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.form()?;
        self.requirements()
    }

    /// Checks the form of `ret`, which has no operands.
    fn nothing(&self) -> Result<(), Error> {
        self.count(0..=0)
    }

    /// Accepts a form, which the lowering checks.
    fn any_form(&self) -> Result<(), Error> {
        Ok(())
    }

    fn operand(&self, index: usize) -> &Operand {
        &self.instruction.operands[index]
    }

    fn has(&self, modifier: Modifier) -> bool {
        self.instruction.has(modifier)
    }

    fn has_rounding(&self) -> bool {
        self.instruction
            .modifiers
            .iter()
            .any(|modifier| matches!(modifier, Modifier::Round(_)))
    }

    /// Creates an error for a missing part of the instruction.
    fn lacks(&self, expected: impl Into<String>) -> Error {
        Error::syntax(
            self.instruction.span,
            expected,
            format!("'{}'", self.instruction.opcode),
        )
    }

    /// Creates an error for an unexpected operand.
    fn wrong(&self, index: usize, expected: impl Into<String>) -> Error {
        Error::syntax(
            self.spans[index],
            expected,
            self.describe(self.operand(index)),
        )
    }

    /// Checks the number of operands.
    fn count(&self, expected: RangeInclusive<usize>) -> Result<(), Error> {
        let count = self.spans.len();
        if expected.contains(&count) {
            return Ok(());
        }
        let (least, most) = (*expected.start(), *expected.end());
        let range = if least == most {
            least.to_string()
        } else {
            format!("{least} to {most}")
        };
        let plural = if most == 1 { "" } else { "s" };
        let message = format!("{range} operand{plural} for '{}'", self.instruction.opcode);
        if count < least {
            return Err(Error::syntax(
                self.end,
                message,
                format!("';' after {count}"),
            ));
        }
        Err(self.wrong(most, message))
    }

    /// Returns the instruction's first type, which must be in `allowed`.
    fn scalar(&self, allowed: &[ScalarType]) -> Result<ScalarType, Error> {
        let scalar = self.instruction.types().next();
        self.member(scalar, allowed)
    }

    /// Checks that a type of the instruction is in `allowed`.
    fn member(
        &self,
        scalar: Option<ScalarType>,
        allowed: &[ScalarType],
    ) -> Result<ScalarType, Error> {
        if let Some(scalar) = scalar.filter(|scalar| allowed.contains(scalar)) {
            return Ok(scalar);
        }
        let names: Vec<String> = allowed
            .iter()
            .map(|scalar| format!(".{}", scalar.name()))
            .collect();
        let opcode = self.instruction.opcode;
        let found = scalar.map_or_else(
            || format!("'{opcode}' without one"),
            |scalar| format!("'.{}'", scalar.name()),
        );
        Err(Error::syntax(
            self.instruction.span,
            format!("a type of '{opcode}': {}", names.join(" ")),
            found,
        ))
    }

    fn register(&self, id: RegisterId) -> ScalarType {
        self.function.registers[id.0 as usize].scalar
    }

    /// Returns `true` if a register can hold a value of type `scalar`.
    fn register_fits(&self, id: RegisterId, scalar: ScalarType, width: Width) -> bool {
        let register = &self.function.registers[id.0 as usize];
        register.vector == 1 && fits(register.scalar, scalar, width)
    }

    /// Returns `true` if an element of a vector register can hold a value of type `scalar`.
    fn element_fits(&self, id: RegisterId, scalar: ScalarType, width: Width) -> bool {
        fits(self.register(id), scalar, width)
    }

    /// Checks a destination operand.
    fn destination(&self, index: usize, scalar: ScalarType, width: Width) -> Result<(), Error> {
        match self.operand(index) {
            Operand::Register(id) if self.register_fits(*id, scalar, width) => Ok(()),
            Operand::Element(id, _) if self.element_fits(*id, scalar, width) => Ok(()),
            _ => Err(self.wrong(index, register_of(scalar, width))),
        }
    }

    /// Checks a source operand: a register or an immediate.
    fn source(&self, index: usize, scalar: ScalarType, width: Width) -> Result<(), Error> {
        if self.value_fits(self.operand(index), scalar, width) {
            return Ok(());
        }
        Err(self.wrong(
            index,
            format!(
                "{} or an immediate of type .{}",
                register_of(scalar, width),
                scalar.name()
            ),
        ))
    }

    /// Returns `true` if a register or immediate can be read as `scalar`.
    fn value_fits(&self, operand: &Operand, scalar: ScalarType, width: Width) -> bool {
        match operand {
            Operand::Register(id) => self.register_fits(*id, scalar, width),
            Operand::Element(id, _) => self.element_fits(*id, scalar, width),
            Operand::Not(_) => scalar == ScalarType::Pred,
            // An address is an immediate only with an offset. Narrower types take its low bits.
            Operand::Symbol(_, offset) => *offset != 0 && scalar.is_integer_like(),
            Operand::Integer(_) => scalar.class() != ScalarClass::Float,
            Operand::Single(_) => {
                matches!(scalar, ScalarType::F32 | ScalarType::F64 | ScalarType::B32)
            }
            Operand::Double(_) => {
                matches!(scalar, ScalarType::F32 | ScalarType::F64 | ScalarType::B64)
            }
            _ => false,
        }
    }

    /// Checks the operands of an instruction with a destination and sources of one type.
    fn uniform(&self, scalar: ScalarType, sources: RangeInclusive<usize>) -> Result<(), Error> {
        self.count(sources.start() + 1..=sources.end() + 1)?;
        self.destination(0, scalar, Width::Exact)?;
        (1..self.spans.len()).try_for_each(|index| self.source(index, scalar, Width::Exact))
    }

    /// Returns an operand as an error message quotes it.
    fn describe(&self, operand: &Operand) -> String {
        let register = |id: &RegisterId| {
            let register = &self.function.registers[id.0 as usize];
            let vector = if register.vector > 1 {
                format!(".v{} ", register.vector)
            } else {
                String::new()
            };
            format!(
                "'{}' of type {vector}.{}",
                self.module.text(register.name),
                register.scalar.name()
            )
        };
        match operand {
            Operand::Register(id) => register(id),
            Operand::Element(id, _) => format!("an element of {}", register(id)),
            Operand::Select(id, _) => format!("a part of {}", register(id)),
            Operand::Not(id) => format!("the negation of {}", register(id)),
            Operand::Pair(..) => "a pair 'a|b'".into(),
            Operand::Integer(integer) => format!("the integer {}", integer.value()),
            Operand::Single(bits) => format!("the f32 {}", f32::from_bits(*bits)),
            Operand::Double(bits) => format!("the f64 {}", f64::from_bits(*bits)),
            Operand::Special(_) => "a special register".into(),
            Operand::Address(_) | Operand::Tensor(_) => "an address in brackets".into(),
            Operand::Vector(elements) => format!("a vector of {}", elements.len()),
            Operand::VectorPair(elements, _) => {
                format!("a vector of {} and a predicate", elements.len())
            }
            Operand::Label(id) => format!(
                "the label '{}'",
                self.module.text(self.function.labels[id.0 as usize].name)
            ),
            Operand::BranchTargets(_) => "a list of branch targets".into(),
            Operand::Symbol(..) => "the address of a variable or function".into(),
            Operand::Sink => "'_'".into(),
            Operand::Call(_) => "a call".into(),
        }
    }
}

macro_rules! define_form {
    ($($variant:ident $text:literal $check:ident $lower:ident $effect:ident $($requirement:literal)*;)*) => {
        impl Context<'_> {
            /// Checks the form with the method from the table of instructions.
            fn form(&self) -> Result<(), Error> {
                match self.instruction.opcode { $(Opcode::$variant => self.$check(),)* }
            }
        }
    };
}

for_each_opcode!(define_form);

fn register_of(scalar: ScalarType, width: Width) -> String {
    match width {
        _ if scalar == ScalarType::Pred => "a predicate register".into(),
        Width::Exact => format!("a {}-bit register for .{}", scalar.bits(), scalar.name()),
        Width::Relaxed => format!(
            "a register for .{} of at least {} bits",
            scalar.name(),
            scalar.bits()
        ),
    }
}

/// Returns `true` if a register of type `held` can hold a value of type `wanted`.
fn fits(held: ScalarType, wanted: ScalarType, width: Width) -> bool {
    let is_float = |it: ScalarType| it.class() == ScalarClass::Float;
    let is_integer =
        |it: ScalarType| matches!(it.class(), ScalarClass::Signed | ScalarClass::Unsigned);
    let classes = if held == ScalarType::Pred || wanted == ScalarType::Pred {
        held == wanted
    } else {
        !(is_float(held) && is_integer(wanted) || is_integer(held) && is_float(wanted))
    };
    let widths = match width {
        _ if is_float(held) && is_float(wanted) => held == wanted,
        Width::Relaxed => held.bits() >= wanted.bits(),
        Width::Exact => held.bits() == wanted.bits(),
    };
    classes && widths
}
