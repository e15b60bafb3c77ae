//! A decoded instruction.

use super::unit::Unit;
use crate::exec::space::Space;

/// Executes one instruction for the active lanes of a unit.
///
/// # Safety
///
/// The processor must support the features that the handler was compiled for, see
/// `handler::wide_vectors`.
pub(crate) type Handler = unsafe fn(&mut Unit<'_>, &Op) -> Control;

/// A decoded instruction: its handler and its operands. It occupies one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Op {
    pub(crate) run: Handler,
    /// An immediate operand. Its meaning depends on the handler; see [`Op::branch_target`],
    /// [`Op::table_index`] and [`Op::members`]. Memory instructions add it to the address register.
    pub(crate) imm: u64,
    /// Destination register.
    pub(crate) d: u32,
    /// First source.
    pub(crate) a: u32,
    /// Second source.
    pub(crate) b: u32,
    /// Third source.
    pub(crate) c: u32,
    /// A fifth operand. Its meaning depends on the handler; see [`Op::second_destination`] and
    /// [`Op::element_offset`].
    pub(crate) e: u32,
    /// The guard predicate; 0 is always true.
    pub(crate) guard: u32,
    /// All ones if the guard is negated.
    pub(crate) negate: u32,
    /// Line of the instruction in the PTX source.
    pub(crate) line: u32,
    /// State space, for memory instructions.
    pub(crate) space: Space,
    /// `true` if lanes whose guard is false must leave the fragment first.
    pub(crate) splits: bool,
    /// `true` if the address operand is a 32-bit register.
    pub(crate) narrow_address: bool,
    /// The required alignment in bytes, less one.
    pub(crate) align_mask: u8,
    /// The slot of the address register in the cache of access patterns, for memory instructions.
    pub(crate) pattern: PatternSlot,
    /// The kind of the op.
    pub(crate) role: Role,
    /// The superinstruction that begins here, by its index in
    /// [`Function::superinstructions`](super::program::Function).
    pub(crate) superinstruction: u32,
}

const _: () = assert!(size_of::<Op>() == 64, "an op occupies one cache line");

impl Op {
    /// Creates an instruction without operands.
    pub(crate) fn new(run: Handler) -> Self {
        Self {
            run,
            imm: 0,
            d: 0,
            a: 0,
            b: 0,
            c: 0,
            e: 0,
            guard: 0,
            negate: 0,
            line: 0,
            space: Space::Generic,
            splits: false,
            narrow_address: false,
            align_mask: 0,
            pattern: PatternSlot::None,
            role: Role::None,
            superinstruction: 0,
        }
    }

    /// The target of a direct branch.
    #[inline(always)]
    pub(crate) fn branch_target(&self) -> u32 {
        self.imm as u32
    }

    /// The index of the instruction's parameters in one of the tables of its
    /// [`Function`](super::program::Function).
    #[inline(always)]
    pub(crate) fn table_index(&self) -> usize {
        self.imm as usize
    }

    /// The row with the member masks of a collective instruction, or `None` if all active lanes are
    /// members.
    #[inline(always)]
    pub(crate) fn members(&self) -> Option<u32> {
        (self.imm != u64::from(NO_REGISTER)).then_some(self.imm as u32)
    }

    /// The second destination of an instruction that may have two.
    #[inline(always)]
    pub(crate) fn second_destination(&self) -> Option<u32> {
        (self.e != NO_REGISTER).then_some(self.e)
    }

    /// The offset of the element that a memory instruction accesses in its vector. The alignment is
    /// that of the vector.
    #[inline(always)]
    pub(crate) fn element_offset(&self) -> u64 {
        self.e.into()
    }
}

/// The kind of an op, for superinstructions and for the control flow around barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Any other.
    None,
    /// A load or arithmetic.
    Step(Operation),
    /// Checks the next load for races.
    CheckRaces,
    /// Finds the uninitialized bytes of the next load.
    FindUninitialized,
    /// Jumps to `imm`.
    Branch,
    /// Jumps to a target in the table `imm`.
    IndexedBranch,
    /// Returns or exits.
    End,
    /// Waits until all live threads of the warp are here. The next instruction is an aligned
    /// barrier.
    CheckAligned,
    /// Waits for the lanes of the member mask in row `imm`.
    Collective(Exchanged),
}

/// The registers of a collective instruction that one lane reads of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchanged {
    None,
    /// The 32-bit rows `a`, `b` and `c`.
    Words,
    /// The 32-bit row `a` of a reduction, which `e` qualifies.
    Reduced,
    /// The 64-bit row `a`.
    Double,
    /// The predicate `a`, negated if `b` is all ones.
    Predicate,
}

impl Role {
    /// Returns `true` if the op may continue elsewhere than at the next one in the same function.
    pub(crate) fn is_flow(self) -> bool {
        matches!(self, Self::Branch | Self::IndexedBranch | Self::End)
    }
}

/// The number of slots of the cache of access patterns.
pub(crate) const ACCESS_PATTERN_SLOTS: usize = 4;

/// A memory instruction's use of the cache of access patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternSlot {
    /// The instruction does not use the cache.
    None,
    /// The instruction detects the pattern and stores it in this slot.
    Fill(u8),
    /// The pattern is in this slot, unless the fragment began to execute after the instruction that
    /// fills it.
    Reuse(u8),
}

/// The next step of a fragment after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// Goes to the next instruction.
    Next,
    /// Skips this number of ops, including this one.
    Skip(u32),
    /// Jumps to `imm` in the active lanes.
    Branch,
    /// Jumps to a target for each lane, from the table `imm`, by the index in `a`.
    BranchIndexed,
    /// Calls through the call site `imm`.
    Call,
    /// Returns to the caller, or ends the threads of a kernel.
    Return,
    /// Ends the threads.
    Exit,
    /// Waits at a barrier, see `Unit::wait`.
    Wait,
    /// Waits until a phase of the cluster's barrier completes.
    WaitForCluster { phase: u32 },
    /// Waits until tensor memory has been deallocated more often than this, and then repeats the
    /// instruction.
    WaitForTensorMemory { deallocations: u32 },
    /// Waits, as with `Converge`, for the other live threads of the warp, unless they will not
    /// arrive here.
    CheckAligned,
    /// Waits until more lanes arrive or some have ended, and then repeats the instruction.
    Converge,
    /// Continues these lanes; the others wait as with `Converge`.
    ContinueSome { lanes: u32 },
    /// Waits for the groups of the member mask in row `imm`, whose lanes may arrive at other
    /// instructions.
    Gather,
    /// Stops the launch, see `Unit::trap`.
    Fault,
}

/// The value of `Op::e` of [`compare`] without a second destination.
pub(crate) const NO_REGISTER: u32 = u32::MAX;

/// The operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A copy of the first source.
    Load,
    Add,
    Subtract,
    Multiply,
    /// The product of the first two sources plus the third, rounded once.
    MultiplyAdd,
}
