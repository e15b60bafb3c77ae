//! The executor: a lowered program, and a launch of one of its kernels on host threads.
//!
//! [`lower`] turns a parsed module into a [`Program`]: for each function a flat list of decoded instructions, each with a handler and the
//! rows of its operands. [`run`] executes a kernel. Worker threads run the blocks, a block is a loop over resumable warps, and a warp
//! executes each instruction for all lanes that have reached it.
//!
//! The generic address space has device memory below 2^48, and above it windows for shared, local and parameter memory and for functions.
//! Every access is checked for bounds and alignment.

mod access;
mod access_pattern;
mod access_pattern_cache;
mod aligned;
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
pub mod tensor_map;
mod tensor_map_update;
mod tensor_memory;
mod texture;
mod transfer;
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

pub use grid::{DeviceModel, Launch, Schedule, Statistics, run};
pub use image::{AddressMode, Channel, Element, Image, Surface, Texture, Tiles};
pub use lower::{LowerError, is_system_function, lower, lower_with_checks};
pub use memory::{Memory, Segment};
pub use program::{Address, Checking, Global, Kernel, Param, Program, Relocation};
pub use report::{
    Access, Area, Conflict, Divergence, NearbyAllocation, Report, ReportKind, Severity, Stale,
    StreamRace,
};
pub use runtime::Runtime;
pub use runtime_use::RuntimeUse;
pub use watch::{AccessKind, Watcher};
pub use written::Written;

#[cfg(test)]
mod tests;
