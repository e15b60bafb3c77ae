//! Refusals of modules that cannot be executed.

use thiserror::Error;

use crate::syntax::{Instruction, ScalarType, Span};

/// A refusal of a module: the location and the unsupported instruction or form.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("line {line}, column {column}: {message}")]
pub struct LowerError {
    /// Line in the PTX source, from 1.
    pub line: u32,
    /// Character in the line, from 1.
    pub column: u32,
    /// The name of the unsupported instruction, form or operand.
    pub message: String,
}

/// A refusal without its location, which the caller adds.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) String);

/// The result of lowering a part of an instruction.
pub(super) type Lowered<T = ()> = Result<T, Refusal>;

impl LowerError {
    pub(super) fn new(span: Span, refusal: Refusal) -> Self {
        Self {
            line: span.line,
            column: span.column,
            message: refusal.0,
        }
    }
}

impl Refusal {
    /// Refuses an unsupported form of a supported instruction.
    pub(super) fn form(instruction: &Instruction) -> Self {
        let suffixes: String = instruction
            .modifiers
            .iter()
            .map(|modifier| format!(".{modifier}"))
            .collect();
        Self(format!(
            "`{}{suffixes}` with these operands is not supported",
            instruction.opcode
        ))
    }

    /// Refuses a type that the instruction does not support.
    pub(super) fn scalar(instruction: &Instruction, scalar: ScalarType) -> Self {
        let opcode = instruction.opcode;
        Self(format!(
            "`{opcode}` of type .{} is not supported",
            scalar.name()
        ))
    }

    /// Refuses an operand of the wrong kind.
    pub(super) fn operand(expected: &str) -> Self {
        Self(format!("unsupported operand (expected {expected})"))
    }
}
