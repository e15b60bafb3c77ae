//! The executor: a lowered program, and a launch of one of its kernels on host threads.
//!
//! [`lower()`] turns a parsed module into a [`Program`]: for each function a flat list of decoded
//! instructions, each with a handler and the rows of its operands. [`run()`] executes a kernel.
//! Worker threads run the blocks, a block is a loop over resumable warps, and a warp executes each
//! instruction for all lanes that have reached it.
//!
//! The generic address space has device memory below 2^48, and above it windows for shared, local
//! and parameter memory and for functions. Every access is checked for bounds and alignment.
//!
//! The modules are layers, each of which imports only those before it:
//!
//! 1. `values`, `space`: the values of lanes, and the state spaces;
//! 2. `check`: what is recorded of accesses and of undefined bytes, and the reports;
//! 3. `memory`, `frame`, `image`, `matrix`: memory of the host, registers, textures and surfaces,
//!    and products of matrices;
//! 4. `operands`, `machine`: the decoded program, and the state of a launch that its ops operate
//!    on;
//! 5. `ops`: the handlers of ops, with their accesses and checks;
//! 6. `run`: the scheduling of blocks, warps and fragments;
//! 7. `lower`: the decoder, which selects the handlers.

pub(crate) mod check;
pub(crate) mod frame;
pub(crate) mod image;
mod lower;
pub(crate) mod machine;
pub(crate) mod matrix;
mod memory;
mod operands;
pub(crate) mod ops;
mod run;
mod space;
pub(crate) mod values;

pub use check::fact::{
    Fact, FirstStore, LaneAccesses, LaneGroup, LoopCondition, RegisterValue, ThreadRange,
    UnwrittenBytes,
};
pub use check::report::{
    Access, Area, Budget, Conflict, Divergence, NearbyAllocation, Report, ReportKind, Severity,
    Stale, StreamRace, ThreadGroup,
};
pub use check::source::{CodeLocation, SourceLocation};
pub use check::watch::{AccessKind, Watcher};
pub use check::written::Written;
pub use image::{AddressMode, Channel, Element, Image, Surface, Texture, Tiles};
pub use lower::{LowerError, is_system_function, lower, lower_with_checks};
pub use machine::launch::{DeviceModel, Launch, Limits, Schedule, Statistics};
pub use machine::program::{Address, Checking, Global, Kernel, Param, Program, Relocation};
pub use machine::runtime::Runtime;
pub use machine::runtime_use::RuntimeUse;
pub use memory::{Memory, Segment};
pub use ops::tensor_map;
pub use run::grid::run;

#[cfg(test)]
mod tests;
