//! Operands, with every name resolved to an id.

use super::ast::{BranchTargetsId, CallTargetsId, FunctionId, LabelId, PrototypeId};
use super::special::SpecialRegister;

/// A register of a function: an index into [`Function::registers`](super::Function::registers).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct RegisterId(pub u32);

/// A module variable: an index into [`Module::variables`](super::Module::variables).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct GlobalId(pub u32);

/// A variable or parameter of a function: an index into
/// [`Function::variables`](super::Function::variables).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct LocalId(pub u32);

/// Something with an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Symbol {
    /// A module variable.
    Global(GlobalId),
    /// A variable or parameter of the function.
    Local(LocalId),
    /// A function.
    Function(FunctionId),
}

/// An integer literal or constant expression of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Integer {
    /// The value in two's complement. Narrower types take its low bits.
    pub(crate) bits: u64,
    /// `true` if `bits` is a negative number.
    pub(crate) negative: bool,
}

impl Integer {
    /// Returns the mathematical value.
    #[must_use]
    pub(crate) const fn value(self) -> i128 {
        if self.negative {
            self.bits.cast_signed() as i128
        } else {
            self.bits as i128
        }
    }
}

/// An operand of an [`Instruction`](super::Instruction).
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Operand {
    /// `%r1`
    Register(RegisterId),
    /// `%v.x`: one element of a vector register, counted from 0 (`.x`/`.r`, `.y`/`.g`, `.z`/`.b`,
    /// `.w`/`.a`).
    Element(RegisterId, u8),
    /// `%r1.b3210` or `%r1.h10`: bytes or halves of a register, for the video instructions.
    Select(RegisterId, Selector),
    /// `!%p1`
    Not(RegisterId),
    /// `%p1|%p2` or `%r1|%p1`, where either may be the sink `_`.
    Pair(Option<RegisterId>, Option<RegisterId>),
    /// An integer immediate.
    Integer(Integer),
    /// The bits of an f32 immediate, written `0f3F800000`.
    Single(u32),
    /// The bits of an f64 immediate, written `0d3FF0000000000000` or `1.0`.
    Double(u64),
    /// `%tid.x`
    Special(SpecialRegister),
    /// `[base+offset]`
    Address(Address),
    /// `[handle, {x, y}]`: texture, surface and tensor accesses.
    Tensor(Box<Tensor>),
    /// `{a, b, …}`; elements are registers, immediates or [`Operand::Sink`].
    Vector(Box<[Operand]>),
    /// `{a, b, …}|p`: a vector, and a predicate that is true if the elements have physical memory.
    VectorPair(Box<[Operand]>, RegisterId),
    /// The target of a branch.
    Label(LabelId),
    /// The list that a `brx.idx` selects from.
    BranchTargets(BranchTargetsId),
    /// The address of a variable or function, plus an offset in bytes.
    Symbol(Symbol, i64),
    /// `_`: the result is discarded.
    Sink,
    /// The return operands, callee and arguments of a `call`; its only operand.
    Call(Box<Call>),
}

/// A memory operand `[base+offset]`; the offset is in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Address {
    /// The base, to which the offset is added.
    pub(crate) base: Base,
    /// The offset in bytes.
    pub(crate) offset: i64,
}

/// The base of an [`Address`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Base {
    /// The value of a register.
    Register(RegisterId),
    /// The address of a variable or function.
    Symbol(Symbol),
    /// No base: the offset is the address.
    Absolute,
}

/// A memory operand with coordinates, `[handle, sampler, {x, y}]`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tensor {
    /// The texture, surface or tensor map.
    pub(crate) handle: Address,
    /// The sampler, if the operand names one.
    pub(crate) sampler: Option<Address>,
    /// The coordinates.
    pub(crate) coordinates: Box<[Operand]>,
}

/// A call: `call (returns), callee, (arguments), signature`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Call {
    /// The destinations of results: `.param` variables ([`Operand::Symbol`]), registers or sinks.
    pub(crate) returns: Box<[Operand]>,
    /// The callee.
    pub(crate) callee: Callee,
    /// The arguments: `.param` variables ([`Operand::Symbol`]), registers or immediates.
    pub(crate) arguments: Box<[Operand]>,
}

/// The callee of a [`Call`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Callee {
    /// A function by name.
    Direct(FunctionId),
    /// A function whose address is in a register.
    Indirect(RegisterId, CallSignature),
}

/// The signature of an indirect call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum CallSignature {
    /// A `.callprototype`.
    Prototype(PrototypeId),
    /// A list of the possible callees.
    Targets(CallTargetsId),
}

/// The bytes or halves that a video instruction selects from one or two registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Selector {
    /// `true` for halves, `false` for bytes.
    pub(crate) halves: bool,
    /// The indices as written, the most significant first. The first `count` are valid.
    pub(crate) indices: [u8; 4],
    /// The number of selected elements.
    pub(crate) count: u8,
}

impl Selector {
    /// Parses `b3`, `b7610`, `h1`, `h32`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, digits) = text.split_at_checked(1)?;
        let halves = match kind {
            "b" => false,
            "h" => true,
            _ => return None,
        };
        let max_digit = if halves { b'3' } else { b'7' };
        let is_valid = matches!(digits.len(), 1..=4)
            && digits
                .bytes()
                .all(|digit| (b'0'..=max_digit).contains(&digit));
        if !is_valid {
            return None;
        }
        let mut indices = [0; 4];
        for (index, digit) in indices.iter_mut().zip(digits.bytes()) {
            *index = digit - b'0';
        }
        Some(Self {
            halves,
            indices,
            count: u8::try_from(digits.len()).ok()?,
        })
    }
}
