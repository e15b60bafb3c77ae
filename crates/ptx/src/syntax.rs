//! The PTX front end: parses text to a typed and resolved [`Module`].
//!
//! [`parse`] reads PTX from compilers and hand-written PTX, resolves every name to an id, and
//! checks the forms of the instructions that the simulator executes. For every input, it takes time
//! and memory proportional to the length of the text: nesting is limited, register ranges are kept
//! as ranges, and nothing panics.
//!
//! A module is flat. Parsing removes scopes: each register, variable and label has an id that is
//! unique within its function, and a function's body is one list of instructions to which its
//! labels refer.

mod ast;
mod error;
mod keyword;
mod lexer;
mod modifier;
mod name;
mod opcode;
mod operand;
mod parser;
mod scalar;
mod scope;
mod special;
mod spelling;
#[cfg(test)]
mod tests;
mod validate;
mod variable;

use curium_format::PtxVersion;

pub use ast::{Function, Module};
pub(crate) use ast::{
    FunctionId, FunctionKind, Instruction, LabelId, Parameter, Register, SourcePosition, Texturing,
};
pub(crate) use error::Span;
pub use error::{Error, ErrorKind};
pub(crate) use keyword::Keyword;
pub(crate) use modifier::{
    CacheLevel, Compare, Modifier, Operation, Rounding, Scope, Semantics, Shape, ShuffleMode,
    Space, VoteMode,
};
pub use name::Name;
pub(crate) use opcode::{Effect, Opcode, for_each_opcode};
pub(crate) use operand::{
    Address, Base, Call, CallSignature, Callee, GlobalId, Integer, LocalId, Operand, RegisterId,
    Selector, Symbol, Tensor,
};
pub(crate) use scalar::{ScalarClass, ScalarType};
pub(crate) use special::SpecialRegister;
pub(crate) use validate::ParsedForm;
pub(crate) use variable::Constant;
pub use variable::Variable;

#[cfg(test)]
pub(crate) use ast::{Alias, Performance, Predicate, PrototypeId};
#[cfg(test)]
pub(crate) use modifier::Eviction;

/// Returns the name of every supported instruction, and the requirements of its forms, such as
/// `7.8 sm_90: .bf16`. For tests and for the documentation.
#[doc(hidden)]
pub fn instructions() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    Opcode::all().map(|opcode| (opcode.name(), opcode.requirements()))
}

/// Parses, resolves and validates a PTX module.
///
/// # Errors
///
/// Returns the first error, with its line and column.
pub fn parse(source: &str) -> Result<Module, Error> {
    parse_for(source, PtxVersion::NEWEST_KNOWN)
}

/// Parses a module like [`parse`], for a driver that supports PTX up to version `newest`.
///
/// # Errors
///
/// Returns the errors of [`parse`], and [`ErrorKind::UnsupportedVersion`] for a newer `.version`.
pub fn parse_for(source: &str, newest: PtxVersion) -> Result<Module, Error> {
    parser::parse(source, newest)
}
