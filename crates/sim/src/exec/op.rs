//! One decoded instruction.

use super::unit::Unit;

/// Executes one instruction for the active lanes of a unit.
///
/// # Safety
///
/// The processor has the features that the handler was compiled for; `wide` says which.
pub(crate) type Handler = unsafe fn(&mut Unit<'_>, &Op) -> Control;

/// A decoded instruction: what to run and where its operands are. One takes a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Op {
    pub(crate) run: Handler,
    /// An immediate whose meaning is the handler's: an offset, a target, a selector.
    pub(crate) imm: u64,
    /// Destination register.
    pub(crate) d: u32,
    /// First source.
    pub(crate) a: u32,
    /// Second source.
    pub(crate) b: u32,
    /// Third source.
    pub(crate) c: u32,
    /// Second destination, or a small number of the handler's own.
    pub(crate) e: u32,
    /// Predicate that guards the instruction; 0 is always true.
    pub(crate) guard: u32,
    /// All ones if the guard is negated.
    pub(crate) negate: u32,
    /// Line of the instruction in the PTX source.
    pub(crate) line: u32,
    /// State space, for memory instructions.
    pub(crate) space: Space,
    /// `true` if lanes whose guard is false must leave the fragment before it runs.
    pub(crate) splits: bool,
    /// `true` if the address operand is a 32-bit register.
    pub(crate) narrow_address: bool,
    /// Bytes to which the address must be aligned, less one.
    pub(crate) align_mask: u8,
    /// Where the runs of the address register are kept, for memory instructions.
    pub(crate) runs: RunsSlot,
}

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
            runs: RunsSlot::None,
        }
    }
}

/// The number of address registers of a function whose runs are kept at a time.
pub(crate) const KEPT_RUNS: usize = 4;

/// Where a memory instruction finds the runs of its address register, or leaves them to those that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunsSlot {
    /// Nowhere.
    None,
    /// It finds them itself and keeps them in this slot.
    Keep(u8),
    /// They are in this slot, unless the fragment began to execute after the instruction that keeps them.
    Reuse(u8),
}

/// What a fragment does after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// Goes to the next instruction.
    Next,
    /// Jumps to `imm` in the lanes that are active.
    Branch,
    /// Jumps to a target of each lane's own, from the table `imm`, by the index in `a`.
    BranchIndexed,
    /// Calls by the call site `imm`.
    Call,
    /// Returns to the caller; ends the threads of a kernel.
    Return,
    /// Ends the threads.
    Exit,
    /// Waits at a barrier; see `Unit::wait`.
    Wait,
    /// Waits until the phase of the cluster's barrier in `Unit::needed` is over.
    WaitForCluster,
    /// Waits until more lanes are here, or some have ended, and then runs the instruction again.
    Converge,
    /// The lanes in `Unit::needed` go to the next instruction; the others wait as with `Converge`.
    Part,
    /// Waits, in groups by the member mask in row `imm`, for lanes that may come from other instructions too.
    Gather,
    /// Stops the launch; see `Unit::trap`.
    Fault,
}

/// A PTX state space, as an access sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Any window, by the address.
    Generic,
    /// Device memory; constants too.
    Global,
    /// The block's shared memory.
    Shared,
    /// The thread's local memory, by address.
    Local,
    /// The thread's local memory, by offset from the frame: no register in the address.
    Frame,
    /// The kernel's parameters.
    Param,
}
