//! What stops a launch: the cause, and where it happened.

use std::fmt;

/// The error that ended a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Name of the kernel that was launched.
    pub kernel: String,
    /// Name of the function that was running.
    pub function: String,
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// Index of the thread in its block; the lowest, if several were at fault.
    pub thread: [u32; 3],
    /// Line of the instruction in the PTX source; 0 if no instruction was running.
    pub line: u32,
    /// The access that failed, if one did.
    pub access: Option<Access>,
}

/// A memory access that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// First byte, in the address space that the instruction named.
    pub address: u64,
    /// Length in bytes.
    pub size: u32,
    /// Whether it would have changed memory.
    pub write: bool,
}

/// The cause of a [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access touched memory that is not allocated.
    IllegalAddress,
    /// An access was not aligned to its size.
    MisalignedAddress,
    /// The kernel executed `trap` or `brkpt`.
    Trap,
    /// An assertion in the kernel failed.
    Assert,
    /// A thread's calls and variables outgrew its local memory.
    HardwareStackError,
    /// A call or branch left the program: a bad function address, or no instruction there.
    InvalidProgramCounter,
    /// Every thread waits, and none can end the wait. Hardware would hang.
    Deadlock,
    /// The launch asks for something that the device or the kernel does not allow.
    InvalidLaunch(&'static str),
    /// The launch was cancelled from outside.
    Cancelled,
}

/// A fault as a handler sees it, before the place is filled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trap {
    pub(crate) kind: FaultKind,
    pub(crate) lane: usize,
    pub(crate) access: Option<Access>,
}

impl Trap {
    /// A fault of one lane that is not about memory.
    pub(crate) fn new(kind: FaultKind, lane: usize) -> Self {
        Self { kind, lane, access: None }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IllegalAddress => "illegal address",
            Self::MisalignedAddress => "misaligned address",
            Self::Trap => "trap",
            Self::Assert => "assertion failed",
            Self::HardwareStackError => "local memory stack overflow",
            Self::InvalidProgramCounter => "invalid program counter",
            Self::Deadlock => "deadlock: every thread waits",
            Self::InvalidLaunch(reason) => reason,
            Self::Cancelled => "cancelled",
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`: {}", self.kernel, self.kind)?;
        if let Some(access) = self.access {
            let verb = if access.write { "write" } else { "read" };
            write!(f, ": {verb} of {} bytes at {:#x}", access.size, access.address)?;
        }
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(f, ", block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})")?;
        if self.line != 0 {
            write!(f, ", PTX line {}", self.line)?;
        }
        if !self.function.is_empty() && self.function != self.kernel {
            write!(f, " in function `{}`", self.function)?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_says_everything_that_is_known() {
        let fault = Fault {
            kind: FaultKind::IllegalAddress,
            kernel: "saxpy".into(),
            function: "load".into(),
            block: [1, 2, 3],
            thread: [4, 5, 6],
            line: 17,
            access: Some(Access { address: 0x1000, size: 4, write: true }),
        };
        assert_eq!(
            fault.to_string(),
            "kernel `saxpy`: illegal address: write of 4 bytes at 0x1000, block (1, 2, 3), \
             thread (4, 5, 6), PTX line 17 in function `load`"
        );
    }
}
