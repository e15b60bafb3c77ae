//! Validation of instruction forms.
//!
//! The forms of frequent instructions are checked: the number and kinds of the operands, the
//! required suffixes, and the width of each register against the instruction's type. Other opcodes
//! are accepted here, and the lowering refuses the forms that the simulator does not execute.

mod asynchronous;
mod barrier_object;
mod control;
mod data;
mod defined;
mod memory;
mod multicast;
mod order;
mod sets;
mod since;
mod tensor_memory;

use std::ops::RangeInclusive;

pub(crate) use self::defined::ParsedForm;
pub(super) use self::since::Unmet;
use super::ast::{Function, Instruction, Module, PrototypeParameter};
use super::error::{Error, Span};
use super::keyword::Keyword;
use super::modifier::{Modifier, Operation};
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
        are_compatible(&self.returns, &other.returns)
            && are_compatible(&self.parameters, &other.parameters)
    }
}

/// Returns `true` if two declarations of a function may have these parameters.
fn are_compatible(a: &[PrototypeParameter], b: &[PrototypeParameter]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| a.is_register == b.is_register && a.size == b.size)
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

/// The error of atomics without an operation.
const MISSING_OPERATION: &str = "missing operation, such as '.add'";

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

    fn has_keyword(&self, keyword: Keyword) -> bool {
        self.has(Modifier::Keyword(keyword))
    }

    fn has_operation(&self, operation: Operation) -> bool {
        self.has(Modifier::Operation(operation))
    }

    /// Returns the first modifier that satisfies a condition.
    fn find_modifier(&self, condition: impl Fn(&Modifier) -> bool) -> Option<Modifier> {
        self.instruction
            .modifiers
            .iter()
            .copied()
            .find(|modifier| condition(modifier))
    }

    /// Creates an error for the form of the instruction.
    fn error(&self, problem: impl AsRef<str>) -> Error {
        self.error_at(self.instruction.span, problem)
    }

    fn error_at(&self, span: Span, problem: impl AsRef<str>) -> Error {
        Error::instruction(span, self.instruction.opcode, problem.as_ref())
    }

    /// Creates an error for an operand.
    fn operand_error(&self, index: usize, expected: impl AsRef<str>) -> Error {
        self.operand_mismatch(index, expected, &self.describe(self.operand(index)))
    }

    /// Creates an error for an operand that the message describes as `found`.
    fn operand_mismatch(&self, index: usize, expected: impl AsRef<str>, found: &str) -> Error {
        let expected = expected.as_ref();
        let problem = format!(
            "invalid operand {} (expected {expected}, found {found})",
            index + 1
        );
        self.error_at(self.spans[index], problem)
    }

    /// Checks the number of operands.
    fn count(&self, expected: RangeInclusive<usize>) -> Result<(), Error> {
        let count = self.spans.len();
        if expected.contains(&count) {
            return Ok(());
        }
        let min = *expected.start();
        let max = *expected.end();
        let range = if min == max {
            min.to_string()
        } else {
            format!("{min} to {max}")
        };
        let span = if count < min {
            self.end
        } else {
            self.spans[max]
        };
        let problem = format!("wrong number of operands (expected {range}, found {count})");
        Err(self.error_at(span, problem))
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
        let expected = alternatives(allowed.iter().map(|scalar| format!(".{}", scalar.name())));
        Err(match scalar {
            Some(scalar) => self.error(format!(
                "unsupported type .{} (expected {expected})",
                scalar.name()
            )),
            None => self.error(format!("missing type (expected {expected})")),
        })
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
            _ => Err(self.operand_error(index, register_description(scalar, width))),
        }
    }

    /// Checks a source operand: a register or an immediate.
    fn source(&self, index: usize, scalar: ScalarType, width: Width) -> Result<(), Error> {
        if self.value_fits(self.operand(index), scalar, width) {
            return Ok(());
        }
        Err(self.operand_error(
            index,
            format!(
                "{} or an immediate of type .{}",
                register_description(scalar, width),
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

    /// Returns an operand as an error message quotes it.
    fn describe(&self, operand: &Operand) -> String {
        match operand {
            Operand::Register(id) => self.describe_register(*id),
            Operand::Element(id, _) => format!("an element of {}", self.describe_register(*id)),
            Operand::Select(id, _) => format!("a part of {}", self.describe_register(*id)),
            Operand::Not(id) => format!("the negation of {}", self.describe_register(*id)),
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

    fn describe_register(&self, id: RegisterId) -> String {
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
    }
}

macro_rules! define_form {
    ($($variant:ident $text:literal $check:ident $lower:ident $effect:ident $flow:ident $($requirement:literal)*;)*) => {
        impl Context<'_> {
            /// Checks the form with the method from the table of instructions.
            fn form(&self) -> Result<(), Error> {
                match self.instruction.opcode {
                    $(Opcode::$variant => self.$check(),)*
                    Opcode::Defined(_) => self.defined(),
                }
            }
        }
    };
}

for_each_opcode!(define_form);

/// Joins alternatives with commas, and the last one with "or".
fn alternatives(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    match (names.pop(), names.is_empty()) {
        (Some(last), false) => format!("{} or {last}", names.join(", ")),
        (last, _) => last.unwrap_or_default(),
    }
}

/// Returns types as an error message lists them.
fn type_list(types: &[ScalarType]) -> String {
    let names: Vec<String> = types
        .iter()
        .map(|scalar| format!(".{}", scalar.name()))
        .collect();
    names.join(", ")
}

fn register_description(scalar: ScalarType, width: Width) -> String {
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
    use ScalarClass as C;
    let have_compatible_classes = match (held.class(), wanted.class()) {
        (C::Predicate, other) | (other, C::Predicate) => other == C::Predicate,
        (C::Float, C::Signed | C::Unsigned) | (C::Signed | C::Unsigned, C::Float) => false,
        (C::Float, C::Float) => return held == wanted,
        _ => true,
    };
    have_compatible_classes
        && match width {
            Width::Relaxed => held.bits() >= wanted.bits(),
            Width::Exact => held.bits() == wanted.bits(),
        }
}
