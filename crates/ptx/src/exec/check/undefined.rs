//! Undefined bytes of registers, and how instructions propagate them.

use std::collections::BTreeMap;

use crate::exec::space::Space;
use crate::exec::values::lane::{LANES, Lanes};

/// A register, or one row of a wide one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RegisterRow {
    /// A row of the 32-bit file.
    Word(u32),
    /// A row of the 64-bit file.
    Double(u32),
    /// A predicate.
    Predicate(u32),
}

/// Undefined bytes of each lane, as a mask.
pub(crate) type Bytes = [u8; LANES];

/// The registers of a frame with undefined bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undefined {
    pub(crate) taints: BTreeMap<RegisterRow, UndefinedBytes>,
    pub(crate) origins: Vec<Origin>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct UndefinedBytes {
    pub(crate) bytes: Bytes,
    /// Index of the instruction from which they originate.
    pub(crate) origin: usize,
}

/// An instruction whose result is undefined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) line: u32,
    pub(crate) cause: Cause,
}

#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there are few origins, and most are loads"
)]
pub(crate) enum Cause {
    /// A load of uninitialized memory.
    Load {
        /// The space of the addresses; `None` for tensor memory.
        space: Option<Space>,
        size: u32,
        addresses: [u64; LANES],
    },
    /// A shuffle from a lane that does not execute it: that of the first lane with an undefined
    /// result.
    Shuffle { source: u32 },
}

/// The uninitialized bytes that the current load found.
#[derive(Clone, Debug, Default)]
pub(crate) struct UninitializedBytes {
    /// The bytes from the start of the load, as a mask.
    pub(crate) bytes: [u32; LANES],
    pub(crate) addresses: [u64; LANES],
}

/// The propagation of undefined bytes through an instruction.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Registers in which undefined bytes are an error, each with the relevant bytes.
    pub(crate) sinks: Vec<(RegisterRow, u8)>,
    pub(crate) propagation: Propagation,
    pub(crate) sources: Vec<Source>,
    /// Results, each with its bytes; `None` if the result is discarded.
    pub(crate) destinations: Vec<(Option<RegisterRow>, u32)>,
}

/// An operand: a register or an immediate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) value: Value,
    /// The number of bytes that are read.
    pub(crate) bytes: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Immediate(u64),
    Register(RegisterRow),
    /// A negated predicate.
    Not(RegisterRow),
}

/// The dependence of results on sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// No results.
    Nothing,
    /// The results are defined.
    Defined,
    /// Every byte of the results depends on all sources.
    All,
    /// Every byte of the results depends on all sources in all lanes of a member mask.
    AllLanes,
    /// Every byte of the results depends on all sources in all lanes of the warp.
    WholeWarp,
    /// The results are the bytes of the sources, in order, extended by zeros or by the sign.
    Bytes { signed: bool },
    /// Each byte depends on the same byte of the sources.
    Bytewise,
    /// A byte with this value in one source determines the result: zero for `and`, all ones for
    /// `or`.
    Dominant(u8),
    /// A comparison of the first two sources, combined with the third. This value of the third
    /// determines the result.
    Compare(Option<bool>),
    /// The first source where the third is true, otherwise the second.
    Select,
    /// A shift of the first source by the second.
    Shift(Shift),
    /// The bits of the second source from the position in the third, as many as the fourth.
    Extract,
    /// Bytes of the first two sources, selected by the third.
    Permute,
    /// A shuffle of the first source among the lanes that the others select.
    Shuffle(u8),
    /// The bytes that the last check of a load found.
    Load,
    /// The sources are stored, in order.
    Store,
}

impl Undefined {
    pub(crate) fn bytes(&self, register: RegisterRow) -> Bytes {
        self.taints
            .get(&register)
            .map_or([0; LANES], |taint| taint.bytes)
    }

    /// Marks the bytes of a register as undefined in some lanes.
    pub(crate) fn set(&mut self, register: RegisterRow, bytes: &Bytes, lanes: u32, origin: usize) {
        let mut merged = self.bytes(register);
        for lane in Lanes(lanes) {
            merged[lane] = bytes[lane];
        }
        if merged == [0; LANES] {
            self.taints.remove(&register);
        } else {
            self.taints.insert(
                register,
                UndefinedBytes {
                    bytes: merged,
                    origin,
                },
            );
        }
    }

    /// Records an undefined result. It replaces the last one of the same instruction.
    pub(crate) fn add_origin(&mut self, origin: Origin) -> usize {
        let last = self
            .origins
            .iter()
            .position(|other| other.line == origin.line);
        match last {
            Some(index) => {
                self.origins[index] = origin;
                index
            }
            None => {
                self.origins.push(origin);
                self.origins.len() - 1
            }
        }
    }

    /// Returns the index of the instruction from which the first undefined source originates.
    pub(crate) fn first_origin(&self, sources: &[Source]) -> usize {
        sources
            .iter()
            .filter_map(|source| source.value.register())
            .find_map(|register| self.taints.get(&register))
            .map_or(0, |taint| taint.origin)
    }
}

impl Value {
    pub(crate) fn register(self) -> Option<RegisterRow> {
        match self {
            Self::Immediate(_) => None,
            Self::Register(register) | Self::Not(register) => Some(register),
        }
    }
}

/// The kind of a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    Left,
    /// To the right, filled with zeros.
    LogicalRight,
    /// To the right, filled with the sign.
    ArithmeticRight,
}
