//! What stops a launch: the cause, and where it happened.

use std::fmt;

use super::op::Space;

/// The error that ended a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Name of the kernel that was launched; empty for a copy or a fill.
    pub kernel: Box<str>,
    /// Name of the function that was running.
    pub function: Box<str>,
    /// Index of the block in the grid.
    pub block: [u32; 3],
    /// Index of the thread in its block; the lowest, if several were at fault.
    pub thread: [u32; 3],
    /// Line of the instruction in the PTX source; 0 if no instruction was running.
    pub line: u32,
    /// Line of the load that made the access and whose value the instruction uses; 0 if the instruction made it itself.
    pub loaded_at: u32,
    /// The access that failed, if one did.
    pub access: Option<Access>,
    /// The allocation that the access missed, where the driver knows one.
    pub neighbour: Option<Box<Neighbour>>,
    /// The two that race, if launches, copies or fills do.
    pub stream_race: Option<Box<StreamRace>>,
}

/// Two launches, copies or fills that nothing orders and that access the same memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamRace {
    /// What found the race by its access: "kernel `name`", "copy", "fill".
    pub name: Box<str>,
    /// The number of its stream, as `cuStreamGetId` gives it.
    pub stream: u64,
    /// What had accessed the memory.
    pub other: Box<str>,
    /// The number of the stream of that.
    pub other_stream: u64,
    /// Whether the other wrote; else it read what is written now.
    pub other_wrote: bool,
}

/// Which two of a driver's launches, copies and fills race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub(crate) own: u32,
    pub(crate) other: u32,
    pub(crate) other_wrote: bool,
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

/// An allocation that a failed access was in, or missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its first byte.
    pub address: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Whether it was freed before the access.
    pub is_freed: bool,
    /// What it is part of.
    pub area: Area,
}

/// The kinds of memory that a kernel accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Area {
    /// Memory of a device or of the host, constants too.
    #[default]
    Global,
    /// The shared memory of a block.
    Shared,
    /// The local memory of a thread, of all its calls together.
    Local,
    /// The parameters of the kernel.
    Parameters,
}

impl Neighbour {
    /// How many bytes an address is outside of the allocation; 0 for one inside.
    #[must_use]
    pub const fn distance(&self, address: u64) -> u64 {
        let end = self.address.saturating_add(self.size);
        if address < self.address {
            self.address - address
        } else if address < end {
            0
        } else {
            address - end + 1
        }
    }

    /// Where an access is, seen from the allocation.
    fn describe(&self, access: Access, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, size, is_freed, area } = *self;
        let end = address.saturating_add(size);
        if access.address < address {
            write!(f, ", {} bytes before", address - access.address)?;
        } else if access.address >= end {
            write!(f, ", {} bytes behind the end of", access.address - end)?;
        } else if is_freed || end - access.address >= u64::from(access.size) {
            write!(f, ", {} bytes into", access.address - address)?;
        } else {
            write!(f, ", across the end of")?;
        }
        match area {
            Area::Global if is_freed => write!(f, " {size} bytes at {address:#x} that were freed"),
            Area::Global => write!(f, " {size} bytes at {address:#x} that are allocated"),
            Area::Shared => write!(f, " the block's {size} bytes of shared memory"),
            Area::Local => write!(f, " the thread's {size} bytes of local memory"),
            Area::Parameters => write!(f, " the kernel's {size} bytes of parameters"),
        }
    }
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
    /// Two threads of a block accessed the same shared memory, one of them wrote, and nothing that orders them lies between.
    Race {
        /// Index in the block of the other thread.
        with: [u16; 3],
    },
    /// A value was used of which bytes come from memory that nobody wrote since it was made: [`Fault::loaded_at`] tells the load.
    Unwritten,
    /// Two launches, copies or fills in streams accessed the same memory, one of them wrote, and nothing orders them:
    /// [`Fault::stream_race`] tells which.
    StreamRace(Conflict),
    /// The host changed memory that a queued copy reads or writes.
    HostRace,
    /// A graph is instantiated or launched with a node that uses something that no longer exists.
    StaleNode {
        /// The number of the node in its graph, as `cuGraphNodeGetLocalId` returns it.
        node: u32,
        /// What no longer exists.
        what: Stale,
    },
    /// Every thread waits, and none can end the wait. Hardware would hang.
    Deadlock,
    /// The device does not carry out the instruction with these operands.
    IllegalInstruction(&'static str),
    /// The launch asks for something that the device or the kernel does not allow.
    InvalidLaunch(&'static str),
    /// The launch was cancelled from outside.
    Cancelled,
}

/// Something that a node of a graph uses after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stale {
    /// A kernel whose module or library was unloaded, or whose context was destroyed.
    Kernel,
    /// An event that was destroyed.
    Event,
    /// Memory that was freed.
    Memory,
}

/// A fault as a handler sees it, before the place is filled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trap {
    pub(crate) kind: FaultKind,
    pub(crate) lane: usize,
    pub(crate) access: Option<Access>,
    /// The space that the access was in; `None` if it is not known.
    pub(crate) space: Option<Space>,
    /// Line of the load whose value the instruction uses; 0 if the instruction made the access itself.
    pub(crate) loaded_at: u32,
    /// How the threads go on, if the fault is passed over.
    pub(crate) resume: Resume,
}

/// How threads go on after a fault that is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// They end.
    End,
    /// After the instruction, which does nothing.
    After,
    /// With the instruction.
    Again,
}

impl Trap {
    /// A fault of one lane that is not about memory.
    pub(crate) fn new(kind: FaultKind, lane: usize) -> Self {
        Self { kind, lane, access: None, space: None, loaded_at: 0, resume: Resume::End }
    }

    /// The same in a space.
    pub(crate) fn in_space(self, space: Space) -> Self {
        Self { space: Some(space), ..self }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Race { with: [x, y, z] } => {
                return write!(f, "race in shared memory with thread ({x}, {y}, {z})");
            }
            Self::IllegalInstruction(reason) => return write!(f, "illegal instruction: {reason}"),
            Self::StaleNode { node, what } => return write!(f, "graph node {node}: {what}"),
            Self::HostRace => "the host changed memory while a copy that uses it was queued",
            Self::Unwritten => "memory that nobody wrote",
            Self::StreamRace(_) => "race between streams",
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

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "its kernel was unloaded",
            Self::Event => "its event was destroyed",
            Self::Memory => "its memory was freed",
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stream_race {
            Some(race) => write!(f, "{race}")?,
            None if matches!(self.kind, FaultKind::StaleNode { .. }) => write!(f, "{}", self.kind)?,
            None if self.kernel.is_empty() => write!(f, "copy: {}", self.kind)?,
            None => write!(f, "kernel `{}`: {}", self.kernel, self.kind)?,
        }
        if let Some(access) = self.access {
            let verb = if access.write { "write" } else { "read" };
            write!(f, ": {verb} of {} bytes at {:#x}", access.size, access.address)?;
        }
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        if !self.kernel.is_empty() {
            write!(f, ", block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})")?;
        }
        if self.line != 0 {
            write!(f, ", PTX line {}", self.line)?;
        }
        if self.loaded_at != 0 {
            write!(f, ", which uses the value loaded in line {}", self.loaded_at)?;
        }
        if !self.function.is_empty() && *self.function != *self.kernel {
            write!(f, " in function `{}`", self.function)?;
        }
        if let (Some(access), Some(neighbour)) = (self.access, &self.neighbour) {
            neighbour.describe(access, f)?;
        }
        Ok(())
    }
}

impl fmt::Display for StreamRace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, stream, other, other_stream, other_wrote } = self;
        let verb = if *other_wrote { "wrote" } else { "read" };
        write!(f, "{name} in stream {stream}: race with {other} in stream {other_stream}, which {verb} there")?;
        f.write_str(" and which nothing orders before it")
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// A fault of a copy or a fill.
    pub(crate) fn of_transfer(kind: FaultKind, access: Access) -> Self {
        Self { access: Some(access), ..Self::outside_of_kernels(kind) }
    }

    /// A fault of a node of a graph.
    pub(crate) fn of_node(node: u32, what: Stale, access: Option<Access>) -> Self {
        Self { access, ..Self::outside_of_kernels(FaultKind::StaleNode { node, what }) }
    }

    fn outside_of_kernels(kind: FaultKind) -> Self {
        Self {
            kind,
            kernel: Box::default(),
            function: Box::default(),
            block: [0; 3],
            thread: [0; 3],
            line: 0,
            loaded_at: 0,
            access: None,
            neighbour: None,
            stream_race: None,
        }
    }
}

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
            loaded_at: 0,
            access: Some(Access { address: 0x1000, size: 4, write: true }),
            neighbour: None,
            stream_race: None,
        };
        let place = "kernel `saxpy`: illegal address: write of 4 bytes at 0x1000, block (1, 2, 3), \
             thread (4, 5, 6), PTX line 17 in function `load`";
        assert_eq!(fault.to_string(), place);
        for (address, size, is_freed, end) in [
            (0xf00, 0x80, false, ", 128 bytes behind the end of 128 bytes at 0xf00 that are allocated"),
            (0x1010, 0x80, false, ", 16 bytes before 128 bytes at 0x1010 that are allocated"),
            (0xf82, 0x80, false, ", across the end of 128 bytes at 0xf82 that are allocated"),
            (0xf00, 0x200, false, ", 256 bytes into 512 bytes at 0xf00 that are allocated"),
            (0xf00, 0x200, true, ", 256 bytes into 512 bytes at 0xf00 that were freed"),
        ] {
            let neighbour = Neighbour { address, size, is_freed, area: Area::Global };
            let fault = Fault { neighbour: Some(Box::new(neighbour)), ..fault.clone() };
            assert_eq!(fault.to_string(), format!("{place}{end}"));
        }
        for (area, end) in [
            (Area::Shared, ", 4064 bytes behind the end of the block's 32 bytes of shared memory"),
            (Area::Local, ", 4064 bytes behind the end of the thread's 32 bytes of local memory"),
            (Area::Parameters, ", 4064 bytes behind the end of the kernel's 32 bytes of parameters"),
        ] {
            let neighbour = Neighbour { address: 0, size: 32, is_freed: false, area };
            let fault = Fault { neighbour: Some(Box::new(neighbour)), ..fault.clone() };
            assert_eq!(fault.to_string(), format!("{place}{end}"));
        }
    }
}
