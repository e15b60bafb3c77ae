//! The executor: a lowered program, and a launch of one of its kernels on host threads.
//!
//! [`lower`] turns a parsed module into a [`Program`]: for each function a flat list of decoded instructions, each with a handler and the
//! rows of its operands. [`run`] executes a kernel. Worker threads run the blocks, a block is a loop over resumable warps, and a warp
//! executes each instruction for all lanes that have reached it.
//!
//! The generic address space has device memory below 2^48, and above it windows for shared, local and parameter memory and for functions.
//! Every access is checked for bounds and alignment.

pub(crate) mod check;
mod lower;
pub(crate) mod machine;
mod memory;
pub(crate) mod ops;
pub(crate) mod values;

pub use check::report::{
    Access, Area, Budget, Conflict, Divergence, NearbyAllocation, Report, ReportKind, Severity,
    Stale, StreamRace, ThreadGroup,
};
pub use check::source::{CodeLocation, SourceLocation};
pub use check::watch::{AccessKind, Watcher};
pub use check::written::Written;
pub use lower::{LowerError, is_system_function, lower, lower_with_checks};
pub use machine::grid::{DeviceModel, Launch, Limits, Schedule, Statistics, run};
pub use machine::program::{Address, Checking, Global, Kernel, Param, Program, Relocation};
pub use machine::runtime::Runtime;
pub use machine::runtime_use::RuntimeUse;
pub use memory::{Memory, Segment};
pub use ops::image::{AddressMode, Channel, Element, Image, Surface, Texture, Tiles};
pub use ops::tensor_map;

#[cfg(test)]
mod tests;
