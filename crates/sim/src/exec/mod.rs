//! The executor: a lowered program, and a launch of one of its kernels on host threads.
//!
//! [`lower`] turns a parsed module into a [`Program`]: for each function a flat list of decoded instructions, each with a handler and the
//! rows of its operands. [`run`] executes a kernel. Worker threads run the blocks, a block is a loop over resumable warps, and a warp
//! executes each instruction for all lanes that have reached it.
//!
//! The generic address space has device memory below 2^48, and above it windows for shared, local and parameter memory and for functions.
//! Every access is checked for bounds and alignment.

mod access;
mod approximate;
mod asynchronous;
mod atomic;
mod barrier;
mod barrier_object;
mod block;
mod bulk;
mod bulk_store;
mod cluster;
mod convert;
mod copies;
mod definedness;
mod exact;
mod extended;
mod float;
mod flow;
mod fragment;
mod frame;
mod fused;
mod gather;
mod grid;
mod handler;
mod image;
mod image_query;
mod integer;
mod kept_runs;
mod lane;
mod lane_addresses;
mod launch_control;
mod launch_race;
mod launch_shadow;
mod local;
mod local_written;
mod logic;
mod lower;
mod matrix;
mod matrix_memory;
mod mbarrier;
mod members;
mod memory;
mod moves;
mod narrow;
mod objects;
mod op;

mod print;
mod program;
mod race;
mod report;
mod runs;
mod runtime;
mod runtime_use;
mod set;
mod shadow;
mod small_float;
mod stack;
mod superinstruction;
mod surface;
mod system;
mod tensor;
pub(crate) mod tensor_map;
mod tensor_map_update;
mod texture;
mod transfer;
mod undefined_bytes;
mod uninitialized;
mod unit;
mod video;
mod warp;
mod warp_wide;
mod warpgroup;
mod watch;
mod window;
mod word;
mod worker;
mod written;

pub(crate) use grid::{DeviceModel, Launch, Schedule, run};
pub(crate) use image::{AddressMode, Channel, Element, Image, Surface, Texture, Tiles};
pub(crate) use lower::{lower, lower_with_checks};
pub(crate) use memory::{Memory, Segment};
pub(crate) use program::{Checking, Global, Kernel, Program};
pub(crate) use report::Conflict;
pub use report::{Access, Area, NearbyAllocation, Report, ReportKind, Severity, Stale, StreamRace};
pub(crate) use runtime::Runtime;
pub(crate) use runtime_use::RuntimeUse;
pub(crate) use watch::{AccessKind, Watcher};
pub(crate) use written::Written;

#[cfg(test)]
pub(crate) use grid::Statistics;

#[cfg(test)]
mod tests;
