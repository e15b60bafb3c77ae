//! Superinstructions: ops that one handler executes.

use std::ops::Range;

use super::op::{Handler, Op, Operation};
use crate::exec::check::shadow::CheckedRead;

/// The maximum number of address registers of a superinstruction.
pub(crate) const MAX_ADDRESSES: usize = 4;

/// Ops that one handler executes.
#[derive(Clone, Debug)]
pub(crate) struct Superinstruction {
    /// The handler of the first op, which the superinstruction replaces.
    pub(crate) first: Handler,
    /// The number of ops.
    pub(crate) ops: u32,
    pub(crate) addresses: Vec<AddressRegister>,
    pub(crate) steps: Vec<Step>,
    /// The offsets of the factors of [`Step::Products`].
    pub(crate) factors: Vec<[i32; 2]>,
    /// The number of loads that are checked for races.
    pub(crate) checked: u32,
    /// `true` if the loads are checked for uninitialized bytes.
    pub(crate) finds_uninitialized: bool,
}

/// An address register, and the loads that use it.
#[derive(Clone, Debug)]
pub(crate) struct AddressRegister {
    /// The first op that uses it.
    pub(crate) op: Op,
    /// The lowest and the highest offset from the register, without the offsets of elements in
    /// vectors.
    pub(crate) offsets: [i32; 2],
    /// The loads that are checked for races, in order.
    pub(crate) checked: Vec<CheckedRead>,
    /// `true` if the checked loads are of consecutive words.
    pub(crate) are_consecutive: bool,
    /// The slot that the loads fill with the access pattern of the register, if any.
    pub(crate) pattern_slot: Option<u8>,
}

/// A step of a superinstruction. Its result is in row `d`, unless that is [`NO_REGISTER`] because
/// only the next step uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    One {
        operation: Operation,
        d: u32,
        sources: [Operand; 3],
    },
    /// Multiply-adds of pairs of factors in shared memory, each with the result of the one before
    /// as addend.
    Products {
        d: u32,
        addend: Operand,
        addresses: [u8; 2],
        factors: Range<usize>,
    },
}

/// A source of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// The result of the last step.
    Last,
    Row(u32),
    /// Shared memory at an offset from an address register, the one with this index.
    Memory(u8, i32),
}
