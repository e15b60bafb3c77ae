//! Whether an instruction has a form that exists.

use super::ast::{Function, Instruction, Module, PrototypeParameter};
use super::error::{Error, Span};

/// What a function takes and returns.
#[derive(Clone, Default, Debug)]
pub(super) struct Signature {
    pub(super) returns: Vec<PrototypeParameter>,
    pub(super) parameters: Vec<PrototypeParameter>,
}

impl Signature {
    /// Whether `other` may declare the same function.
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

/// An instruction and what its operands refer to.
pub(super) struct Context<'p> {
    pub(super) module: &'p Module,
    pub(super) function: &'p Function,
    pub(super) signatures: &'p [Signature],
    pub(super) instruction: &'p Instruction,
    /// Where each operand stands.
    pub(super) spans: &'p [Span],
    /// Where the semicolon stands.
    pub(super) end: Span,
}

impl Context<'_> {
    pub(super) fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}
