//! Reports of errors of kernels, copies and graphs.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::fact::{Fact, write_lanes};
use super::name::demangled;
use super::source::CodeLocation;
use crate::exec::space::Space;

/// Addresses below this are in no allocation, and those of small offsets.
const NULL_PAGES: u64 = 1 << 16;

/// An error of a kernel, a copy or a graph that the simulator found.
///
/// Its text has one line: the kernel, the error, the access with the variable or the allocation at
/// or near its address, the block, the thread, the source line and the PTX line. With `{:#}`, lines
/// with the text of the source and the facts follow.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The kind of error.
    pub kind: ReportKind,
    /// The name of the kernel; empty for a copy, a fill or a graph.
    pub kernel: Box<str>,
    /// Why an image was refused, which stream waits, the condition of an assertion, the barriers of
    /// a deadlock, or the copy that has not written the memory of an uninitialized read; otherwise
    /// empty.
    pub reason: Box<str>,
    /// The index of the block in the grid.
    pub block: [u32; 3],
    /// The index of the thread in its block; the lowest if several threads fault.
    pub thread: [u32; 3],
    /// The instruction.
    pub location: CodeLocation,
    /// The calls that led to the function of the instruction, innermost first.
    pub callers: Vec<CodeLocation>,
    /// The load or the shuffle whose value the instruction uses, unless the instruction made the
    /// access itself.
    pub loaded_at: Option<Box<CodeLocation>>,
    /// The instruction of the other thread: its access in a race, or the position of the first
    /// thread that others wait for.
    pub other: Option<Box<CodeLocation>>,
    /// The positions of the block's threads, if the launch does not end.
    pub threads: Vec<ThreadGroup>,
    /// The number of times that threads failed here in the same way.
    pub count: u64,
    /// The faulting access, if there is one.
    pub access: Option<Access>,
    /// The variable of the access, with the index or the offset in bytes, such as `tile[3][1]` or
    /// `tile + 228`; empty if it is unknown.
    pub variable: Box<str>,
    /// The allocation at or near the address of the access.
    pub nearby: Option<Box<NearbyAllocation>>,
    /// The two operations of a race between streams.
    pub stream_race: Option<Box<StreamRace>>,
    /// The facts that explain the error, such as the bytes that no store wrote.
    pub facts: Vec<Fact>,
}

/// The severity of a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// Racing threads stored the same value, so their order does not matter, and the launch
    /// continues; or an image was refused.
    ///
    /// Such a race is reported once for each instruction: the PTX ISA does not define its result.
    Warning,
    /// The result of the program is undefined, or the launch cannot continue.
    Error,
}

/// Two unordered launches, copies or fills that access the same memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamRace {
    /// The operation whose access completed the race: "kernel `name`", "copy" or "fill".
    pub name: Box<str>,
    /// The id of its stream, as `cuStreamGetId` returns it.
    pub stream: u64,
    /// The operation of the earlier access.
    pub other: Box<str>,
    /// The id of its stream.
    pub other_stream: u64,
    /// `true` if the other operation wrote. Otherwise it read memory that this operation writes.
    pub other_wrote: bool,
    /// The numbers of the two operations, from which the driver finds the names.
    #[doc(hidden)]
    pub conflict: Conflict,
}

/// The numbers of two launches, copies or fills that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The operation whose access completed the race.
    pub own: u32,
    /// The operation of the earlier access.
    pub other: u32,
    /// `true` if the earlier access was a write.
    pub other_wrote: bool,
}

/// A memory access that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first byte, in the address space that the instruction named.
    pub address: u64,
    /// Length in bytes.
    pub size: u32,
    /// `true` for a write.
    pub write: bool,
}

/// The allocation of a failed access, or the nearest one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearbyAllocation {
    /// Its first byte.
    pub address: u64,
    /// Its length in bytes.
    pub size: u64,
    /// `true` if it was freed before the access.
    pub is_freed: bool,
    /// The call or the stream that freed it, such as "by cuMemFree" or "in stream 3"; empty if it
    /// is unknown.
    pub freed_by: Box<str>,
    /// The kind of memory.
    pub area: Area,
}

/// The kinds of memory that a kernel accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Area {
    /// Memory of a device or of the host, including constants.
    #[default]
    Global,
    /// The shared memory of a block.
    Shared,
    /// The shared memory of a block of the cluster, which the address names.
    Cluster {
        /// The rank of the block.
        rank: u32,
        /// The number of blocks of the cluster.
        blocks: u32,
    },
    /// The local memory of a thread, for all its calls.
    Local,
    /// The parameters of the kernel.
    Parameters,
}

impl NearbyAllocation {
    /// Returns the distance in bytes from the allocation to an address outside it; 0 for one
    /// inside.
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

    /// Returns `true` if the allocation contains all bytes of an access.
    fn contains(&self, access: Access) -> bool {
        self.distance(access.address) == 0
            && self.address.saturating_add(self.size) - access.address >= u64::from(access.size)
    }

    /// Writes the position of an access relative to the allocation.
    fn describe(&self, access: Access, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address,
            size,
            is_freed,
            area,
            ..
        } = *self;
        let end = address.saturating_add(size);
        if let Area::Cluster { rank, blocks } = area
            && rank >= blocks
        {
            return write!(f, ", in block {rank} of a cluster of {blocks} blocks");
        }
        if access.address < address {
            write!(f, ", {} bytes before", address - access.address)?;
        } else if access.address >= end {
            match access.address - end {
                0 => f.write_str(", just past the end of")?,
                bytes => write!(f, ", {bytes} bytes past the end of")?,
            }
        } else if is_freed || end - access.address >= u64::from(access.size) {
            write!(f, ", {} bytes into", access.address - address)?;
        } else {
            write!(f, ", across the end of")?;
        }
        match area {
            Area::Global if is_freed => {
                write!(f, " a freed {size}-byte allocation at {address:#x}")?;
                if !self.freed_by.is_empty() {
                    write!(f, ", which was freed {}", self.freed_by)?;
                }
                Ok(())
            }
            Area::Global => write!(f, " a {size}-byte allocation at {address:#x}"),
            Area::Shared => write!(f, " the block's {size} bytes of shared memory"),
            Area::Cluster { rank, .. } => write!(
                f,
                " the {size} bytes of shared memory of block {rank} of the cluster"
            ),
            Area::Local => write!(f, " the thread's {size} bytes of local memory"),
            Area::Parameters => write!(f, " the kernel's {size} bytes of parameters"),
        }
    }
}

/// The cause of a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportKind {
    /// An access touched memory that is not allocated.
    IllegalAddress,
    /// An access was not aligned to its size.
    MisalignedAddress,
    /// The kernel executed `trap` or `brkpt`.
    Trap,
    /// An assertion in the kernel failed.
    Assert,
    /// A thread's calls and variables exceeded its local memory.
    HardwareStackError,
    /// A call or branch left the program: an invalid function address, or no instruction at the
    /// target.
    InvalidProgramCounter,
    /// Two unordered threads of a launch accessed the same memory, and at least one of them wrote.
    Race {
        /// The index of the block of the other thread.
        block: [u32; 3],
        /// The index of the other thread in its block.
        thread: [u16; 3],
        /// `true` if the other thread wrote. Otherwise it read memory that this thread writes.
        wrote: bool,
        /// `true` if both threads stored the same value. The race is a [`Severity::Warning`].
        same_value: bool,
    },
    /// Threads of a warp are at an aligned barrier, and others are not and will not arrive there:
    /// they are at another barrier, or passed this one by.
    DivergentBarrier(Divergence),
    /// Threads wait at a `.sync` instruction for threads of their member mask that do not arrive
    /// there. Hardware would hang.
    MissingMembers(Divergence),
    /// The instruction uses a value with bytes of uninitialized memory. [`Report::loaded_at`] is
    /// the load.
    Uninitialized,
    /// The instruction uses a value that was shuffled from this lane, which did not execute the
    /// shuffle. [`Report::loaded_at`] is the shuffle.
    InactiveLane(u32),
    /// Two unordered launches, copies or fills accessed the same memory, and at least one of them
    /// wrote. [`Report::stream_race`] names them.
    StreamRace,
    /// The host changed memory that a queued copy reads or writes.
    HostRace,
    /// A graph with a node that uses a destroyed object is instantiated or launched.
    StaleNode {
        /// The id of the node in its graph, as `cuGraphNodeGetLocalId` returns it.
        node: u32,
        /// The destroyed object.
        what: Stale,
    },
    /// Every thread waits, and none can end the wait. Hardware would hang. [`Report::threads`] has
    /// the positions.
    Deadlock,
    /// The launch exceeded its budget: it may never end. [`Report::threads`] has the positions of
    /// the threads of a block.
    OverBudget(Budget),
    /// A stream waits for a value in memory that no work writes. Hardware would hang.
    StreamDeadlock,
    /// An operation of an mbarrier object that PTX does not define.
    InvalidBarrier(&'static str),
    /// The device does not support the instruction with these operands.
    IllegalInstruction(&'static str),
    /// The device or the kernel does not allow the configuration of the launch.
    InvalidLaunch(&'static str),
    /// An image with code was refused when it was loaded. [`Report::reason`] is the reason. The
    /// report is a [`Severity::Warning`], since the program receives the code of the error.
    RefusedImage,
    /// The launch was canceled from outside.
    Cancelled,
}

/// A limit of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Budget {
    /// The number of instructions that warps execute.
    Instructions(u64),
    /// The time.
    Time(Duration),
}

/// Threads of a block at one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadGroup {
    /// The number of threads.
    pub count: u32,
    /// The index of the first of them in the block.
    pub first: [u32; 3],
    /// `true` if they wait for other threads.
    pub waits: bool,
    /// The instruction.
    pub location: CodeLocation,
}

/// Threads of a warp at an instruction that others of the warp must execute with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// The index of the warp in its block.
    pub warp: u32,
    /// The lanes that are at the instruction, a bit for each.
    pub waiting: u32,
    /// The lanes that are not, a bit for each.
    pub missing: u32,
}

/// A destroyed object that a graph node uses.
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

/// A fault of a handler, before the location is added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trap {
    pub(crate) kind: ReportKind,
    pub(crate) lane: usize,
    pub(crate) access: Option<Access>,
    /// The space of the access; `None` if unknown.
    pub(crate) space: Option<Space>,
    /// Line of the load whose value the instruction uses; 0 if the instruction made the access
    /// itself.
    pub(crate) loaded_at: u32,
    /// The PTX line of the other thread; 0 if there is none.
    pub(crate) other_line: u32,
    /// The two operations of a race between streams.
    pub(crate) conflict: Option<Conflict>,
    /// The continuation of the threads, if the fault is ignored.
    pub(crate) resume: Resume,
}

/// The continuation of threads after an ignored fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// The threads end.
    End,
    /// The threads continue after the instruction, which has no effect.
    After,
    /// The threads repeat the instruction.
    Again,
}

impl Trap {
    /// Creates a fault of one lane without a memory access.
    pub(crate) fn new(kind: ReportKind, lane: usize) -> Self {
        Self {
            kind,
            lane,
            access: None,
            space: None,
            loaded_at: 0,
            other_line: 0,
            conflict: None,
            resume: Resume::End,
        }
    }

    /// Returns the fault with a space.
    pub(crate) fn in_space(self, space: Space) -> Self {
        Self {
            space: Some(space),
            ..self
        }
    }
}

impl fmt::Display for ReportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Race {
                block: [bx, by, bz],
                thread: [x, y, z],
                same_value,
                ..
            } => {
                let same = if *same_value {
                    " that stores the same value"
                } else {
                    ""
                };
                return write!(
                    f,
                    "race with block ({bx}, {by}, {bz}), thread ({x}, {y}, {z}){same}"
                );
            }
            Self::DivergentBarrier(divergence) => {
                return write!(f, "divergent barrier: {divergence}");
            }
            Self::MissingMembers(divergence) => {
                return write!(f, "deadlock: {divergence}");
            }
            Self::IllegalInstruction(reason) => return write!(f, "illegal instruction: {reason}"),
            Self::InactiveLane(lane) => {
                return write!(
                    f,
                    "undefined value: shuffled from lane {lane}, which did not execute the shuffle"
                );
            }
            Self::StaleNode { node, what } => return write!(f, "graph node {node}: {what}"),
            Self::HostRace => "the host changed memory while a copy that uses it was queued",
            Self::Uninitialized => "uninitialized read",
            Self::StreamRace => "race between streams",
            Self::IllegalAddress => "illegal address",
            Self::MisalignedAddress => "misaligned address",
            Self::Trap => "trap",
            Self::Assert => "assertion failed",
            Self::HardwareStackError => "local memory stack overflow",
            Self::InvalidProgramCounter => "invalid program counter",
            Self::Deadlock => "deadlock: no thread can continue",
            Self::StreamDeadlock => "deadlock: a stream waits for a value that no work writes",
            Self::InvalidBarrier(reason) => reason,
            Self::OverBudget(Budget::Instructions(limit)) => {
                return write!(f, "over budget: the launch executed {limit} instructions");
            }
            Self::OverBudget(Budget::Time(limit)) => {
                return write!(f, "over budget: the launch ran for {limit:?}");
            }
            Self::InvalidLaunch(reason) => reason,
            Self::RefusedImage => "refused image",
            Self::Cancelled => "canceled",
        })
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            warp,
            waiting,
            missing,
        } = *self;
        write!(f, "warp {warp} with ")?;
        write_lanes(f, waiting)?;
        f.write_str(" waiting for ")?;
        write_lanes(f, missing)
    }
}

impl fmt::Display for ThreadGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.first;
        match self.count {
            1 => write!(f, "thread ({x}, {y}, {z}) ")?,
            count => write!(f, "{count} threads from thread ({x}, {y}, {z}) on ")?,
        }
        f.write_str(match (self.count, self.waits) {
            (1, true) => "waits at",
            (_, true) => "wait at",
            (1, false) => "is at",
            (_, false) => "are at",
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

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.severity() == Severity::Warning {
            f.write_str("warning: ")?;
        }
        match &self.stream_race {
            Some(race) => write!(f, "{race}")?,
            None if matches!(self.kind, ReportKind::StaleNode { .. }) => {
                write!(f, "{}", self.kind)?;
            }
            None if self.kind == ReportKind::RefusedImage => {
                return write!(f, "{}: {}", self.kind, self.reason);
            }
            None if self.kind == ReportKind::StreamDeadlock => {
                write!(f, "{}: {}", self.reason, self.kind)?;
            }
            None if self.kernel.is_empty() => write!(f, "copy: {}", self.kind)?,
            None => write!(f, "kernel `{}`: {}", demangled(&self.kernel), self.kind)?,
        }
        if matches!(self.kind, ReportKind::Assert | ReportKind::Deadlock) && !self.reason.is_empty()
        {
            write!(f, ": {}", self.reason)?;
        }
        if let Some(operands @ Fact::Index { .. }) = self.facts.first() {
            write!(f, " ({operands})")?;
        }
        if let Some(access) = self.access {
            let verb = if access.write { "write" } else { "read" };
            write!(f, ": {}-byte {verb} at {:#x}", access.size, access.address)?;
            if !self.variable.is_empty() {
                write!(f, " in `{}`", self.variable)?;
            }
            // The variable says more than its block's shared memory.
            let nearby = self
                .nearby
                .as_ref()
                .filter(|nearby| self.variable.is_empty() || nearby.area != Area::Shared);
            if let Some(nearby) = nearby {
                nearby.describe(access, f)?;
            }
            if self.kind == ReportKind::Uninitialized && !self.reason.is_empty() {
                write!(f, ", {}", self.reason)?;
            }
        }
        if !self.kernel.is_empty() {
            let [bx, by, bz] = self.block;
            let [tx, ty, tz] = self.thread;
            write!(f, ", block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})")?;
        }
        let location = &self.location;
        let main_location = self.main_location();
        if location.line != 0 {
            f.write_str(", ")?;
            main_location.write_source(f)?;
            write!(f, "PTX line {}", location.line)?;
        }
        if !location.function.is_empty() && *location.function != *self.kernel {
            write!(f, " in function `{}`", demangled(&location.function))?;
        }
        // The groups of threads have the text of each instruction.
        if f.alternate() && self.threads.is_empty() {
            if std::ptr::eq(main_location, location) {
                location.write_text(f)?;
            } else {
                location.write_lines(f, true)?;
            }
        }
        for caller in &self.callers {
            self.write_related("called from ", caller, f)?;
        }
        if let Some(load) = &self.loaded_at
            && !load.has_same_source(location)
        {
            let what = match self.kind {
                ReportKind::InactiveLane(_) => "value shuffled at ",
                _ => "value loaded at ",
            };
            self.write_related(what, load, f)?;
        }
        if let Some(other) = &self.other {
            let what = match self.kind {
                ReportKind::Race { wrote: true, .. } => "the other thread wrote at ",
                ReportKind::Race { wrote: false, .. } => "the other thread read at ",
                _ => "the missing lanes are at ",
            };
            self.write_related(what, other, f)?;
        }
        for group in &self.threads {
            let what = format!("{group} ");
            self.write_related(&what, &group.location, f)?;
        }
        if f.alternate() {
            let facts = self.facts.iter();
            for fact in facts.filter(|fact| !matches!(fact, Fact::Index { .. })) {
                write!(f, "\n  {fact}")?;
            }
        }
        if self.count > 1 {
            write!(
                f,
                "{}({} times)",
                if f.alternate() { "\n  " } else { ", " },
                self.count
            )?;
        }
        match self.hint() {
            Some(hint) if f.alternate() => write!(f, "\n  hint: {hint}"),
            _ => Ok(()),
        }
    }
}

impl Report {
    /// Returns what usually removes the error, unless the text of the error says so.
    fn hint(&self) -> Option<&'static str> {
        let hint = match self.kind {
            ReportKind::Race {
                same_value: true, ..
            } => return None,
            ReportKind::Race { block, .. } if block != self.block => {
                "blocks run in any order: use atomic operations, or a second launch"
            }
            ReportKind::Race { .. } => {
                "make an update by several threads one atomic operation; between other accesses, put a barrier: `__syncthreads`, or `__syncwarp` within a warp"
            }
            ReportKind::StreamRace => {
                "record an event after the earlier operation, and let the other stream wait for it"
            }
            ReportKind::HostRace => "wait for the stream before the host changes the memory",
            ReportKind::DivergentBarrier(_) => {
                "move the barrier to where all threads of the block execute it"
            }
            ReportKind::Deadlock if !self.reason.is_empty() => {
                "as many threads as the barrier expects must execute it"
            }
            ReportKind::InactiveLane(_) => {
                "execute the shuffle in all lanes whose values are used, with a neutral value where there is no element"
            }
            ReportKind::MissingMembers(_) => {
                "let all lanes of the mask execute the instruction; a lane that others read cannot be left out of the mask"
            }
            ReportKind::OverBudget(Budget::Instructions(_)) => {
                "check the condition that ends the loop, and who writes what it reads; if the kernel ends eventually, raise the limit by `with_instruction_limit`"
            }
            ReportKind::OverBudget(Budget::Time(_)) => {
                "check the condition that ends the loop, and who writes what it reads; if the kernel ends eventually, raise the limit by `with_time_limit`"
            }
            ReportKind::Uninitialized if !self.reason.is_empty() => {
                "wait for the copy before the read, and at a barrier before other threads read"
            }
            ReportKind::MisalignedAddress => "the address must be a multiple of the size",
            ReportKind::IllegalAddress
                if self.nearby.is_none()
                    && self
                        .access
                        .is_some_and(|access| access.address < NULL_PAGES) =>
            {
                "a null pointer, or the address of a shared or local variable that was not converted to a generic one"
            }
            ReportKind::IllegalAddress => {
                let (access, nearby) = self.access.zip(self.nearby.as_deref())?;
                if nearby.is_freed {
                    "free the memory after the access: in its stream, or after a wait"
                } else if nearby.area == Area::Global && nearby.contains(access) {
                    "the device has no access to this memory: enable peer access, or set the access of the pool or the mapping"
                } else {
                    return None;
                }
            }
            _ => return None,
        };
        Some(hint)
    }

    /// Returns the instruction with the innermost source line of the program itself: the one of the
    /// error, or one of the calls that led to it, if a function of a library failed.
    fn main_location(&self) -> &CodeLocation {
        let callers = self.callers.iter();
        let mut locations = std::iter::once(&self.location).chain(callers);
        locations
            .find(|location| location.has_program_source())
            .unwrap_or(&self.location)
    }

    /// Writes another place in the code that the error depends on: on its own line in the long
    /// form.
    fn write_related(
        &self,
        what: &str,
        location: &CodeLocation,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        f.write_str(if f.alternate() { "\n  " } else { "; " })?;
        f.write_str(what)?;
        location.write_position(f)?;
        if f.alternate() {
            location.write_text(f)?;
        }
        Ok(())
    }
}

impl StreamRace {
    /// Creates a race whose operations have no names yet.
    #[doc(hidden)]
    #[must_use]
    pub fn new(conflict: Conflict) -> Self {
        Self {
            name: Box::default(),
            stream: 0,
            other: Box::default(),
            other_stream: 0,
            other_wrote: conflict.other_wrote,
            conflict,
        }
    }
}

impl fmt::Display for StreamRace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            stream,
            other,
            other_stream,
            other_wrote,
            ..
        } = self;
        let verb = if *other_wrote { "wrote" } else { "read" };
        write!(
            f,
            "{name} in stream {stream}: race with {other} in stream {other_stream}, \
             which {verb} there and is not ordered before it"
        )
    }
}

impl Report {
    /// Returns the severity of the report.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self.kind {
            ReportKind::Race {
                same_value: true, ..
            }
            | ReportKind::RefusedImage => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// Returns `true` if `other` is about the same kind of error at the same place.
    #[doc(hidden)]
    #[must_use]
    pub fn has_same_place(&self, other: &Self) -> bool {
        let has_instruction = self.location.line != 0;
        std::mem::discriminant(&self.kind) == std::mem::discriminant(&other.kind)
            && self.severity() == other.severity()
            && self.kernel == other.kernel
            && self.reason == other.reason
            && self.location == other.location
            && self.other == other.other
            && self.loaded_at == other.loaded_at
            && (has_instruction || self.kind == other.kind && self.access == other.access)
    }

    /// Returns the text without the lines of the source.
    #[doc(hidden)]
    #[must_use]
    pub fn first_line(&self) -> String {
        let once = Self {
            count: 1,
            ..self.clone()
        };
        once.to_string()
    }

    /// Creates a report about a copy or a fill.
    #[doc(hidden)]
    #[must_use]
    pub fn for_transfer(kind: ReportKind, access: Access, conflict: Option<Conflict>) -> Self {
        let stream_race = conflict.map(StreamRace::new).map(Box::new);
        Self {
            access: Some(access),
            stream_race,
            ..Self::without_kernel(kind)
        }
    }

    /// Creates a fault of an operation of a library, which has no threads.
    #[doc(hidden)]
    #[must_use]
    pub fn for_operation(name: &str, kind: ReportKind, access: Access) -> Self {
        Self {
            kernel: name.into(),
            access: Some(access),
            ..Self::without_kernel(kind)
        }
    }

    /// Creates a report about a stream that waits for a value in memory.
    #[doc(hidden)]
    #[must_use]
    pub fn for_stream(stream: u64, access: Option<Access>) -> Self {
        Self {
            reason: format!("stream {stream}").into(),
            access,
            ..Self::without_kernel(ReportKind::StreamDeadlock)
        }
    }

    /// Creates a report about an image that was refused.
    #[doc(hidden)]
    #[must_use]
    pub fn for_image(reason: &str) -> Self {
        Self {
            reason: reason.into(),
            ..Self::without_kernel(ReportKind::RefusedImage)
        }
    }

    /// Creates a fault of a node of a graph.
    #[doc(hidden)]
    #[must_use]
    pub fn for_node(node: u32, what: Stale, access: Option<Access>) -> Self {
        Self {
            access,
            ..Self::without_kernel(ReportKind::StaleNode { node, what })
        }
    }

    fn without_kernel(kind: ReportKind) -> Self {
        Self {
            kind,
            kernel: Box::default(),
            reason: Box::default(),
            block: [0; 3],
            thread: [0; 3],
            location: CodeLocation::default(),
            callers: Vec::new(),
            loaded_at: None,
            other: None,
            threads: Vec::new(),
            count: 1,
            access: None,
            variable: Box::default(),
            nearby: None,
            stream_race: None,
            facts: Vec::new(),
        }
    }

    /// Creates a fault of a kernel that has no instruction.
    pub(crate) fn for_launch(kernel: &str, kind: ReportKind) -> Self {
        Self {
            kernel: kernel.into(),
            ..Self::without_kernel(kind)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_contains_all_known_facts() {
        let fault = Report {
            block: [1, 2, 3],
            thread: [4, 5, 6],
            location: CodeLocation {
                line: 17,
                function: "load".into(),
                ..CodeLocation::default()
            },
            access: Some(Access {
                address: 0x1000,
                size: 4,
                write: true,
            }),
            ..Report::for_launch("saxpy", ReportKind::IllegalAddress)
        };
        let template = "kernel `saxpy`: illegal address: 4-byte write at 0x1000NEAR, \
             block (1, 2, 3), thread (4, 5, 6), PTX line 17 in function `load`";
        assert_eq!(fault.to_string(), template.replace("NEAR", ""));
        for (address, size, is_freed, near) in [
            (
                0xf00,
                0x80,
                false,
                ", 128 bytes past the end of a 128-byte allocation at 0xf00",
            ),
            (
                0x1010,
                0x80,
                false,
                ", 16 bytes before a 128-byte allocation at 0x1010",
            ),
            (
                0xf82,
                0x80,
                false,
                ", across the end of a 128-byte allocation at 0xf82",
            ),
            (
                0xf00,
                0x200,
                false,
                ", 256 bytes into a 512-byte allocation at 0xf00",
            ),
            (
                0xf00,
                0x200,
                true,
                ", 256 bytes into a freed 512-byte allocation at 0xf00",
            ),
        ] {
            let nearby = NearbyAllocation {
                address,
                size,
                is_freed,
                freed_by: Box::default(),
                area: Area::Global,
            };
            let fault = Report {
                nearby: Some(Box::new(nearby)),
                ..fault.clone()
            };
            assert_eq!(fault.to_string(), template.replace("NEAR", near));
        }
        for (area, near) in [
            (
                Area::Shared,
                ", 4064 bytes past the end of the block's 32 bytes of shared memory",
            ),
            (
                Area::Local,
                ", 4064 bytes past the end of the thread's 32 bytes of local memory",
            ),
            (
                Area::Parameters,
                ", 4064 bytes past the end of the kernel's 32 bytes of parameters",
            ),
        ] {
            let nearby = NearbyAllocation {
                address: 0,
                size: 32,
                is_freed: false,
                freed_by: Box::default(),
                area,
            };
            let fault = Report {
                nearby: Some(Box::new(nearby)),
                ..fault.clone()
            };
            assert_eq!(fault.to_string(), template.replace("NEAR", near));
        }
    }
}
