//! The executor: a lowered program, and a launch of one of its kernels on host threads.
//!
//! [`lower`] turns a parsed module into a [`Program`]: for each function a flat list of decoded
//! instructions, each a handler and the rows of its operands. [`run`] executes a kernel: blocks
//! are handed to worker threads, a block is a loop over resumable warps, and a warp executes each
//! instruction for all lanes that are at it.
//!
//! The generic address space has device memory below 2^47, and windows above it for shared, local
//! and parameter memory and for functions. Every access is checked for bounds and alignment.

mod access;
mod approximate;
mod barrier;
mod block;
mod cluster;
mod convert;
mod copies;
mod definedness;
mod exact;
mod fault;
mod float;
mod fragment;
mod frame;
mod gather;
mod grid;
mod handler;
mod image;
mod integer;
mod lane;
mod local;
mod local_written;
mod lower;
mod matrix;
mod mbarrier;
mod members;
mod memory;
mod narrow;
mod objects;
mod op;
mod places;
mod print;
mod program;
mod race;
mod runs;
mod runtime;
mod shadow;
mod small_float;
mod tensor;
pub(crate) mod tensor_map;
mod transfer;
mod undefined_bytes;
mod unit;
mod unwritten;
mod video;
mod warp;
mod warpgroup;
mod watch;
mod window;
mod word;
mod worker;
mod written;

pub use fault::{Access, Area, Conflict, Fault, FaultKind, Neighbour, Stale, StreamRace};
pub use grid::{DeviceModel, Launch, Schedule, Statistics, run};
pub use image::{AddressMode, Channel, Element, Image, Surface, Texture, Tiles};
pub use lower::{LowerError, lower, lower_with_checks};
pub use memory::{Memory, Segment};
pub use program::{Address, Checking, Global, Kernel, Param, Program, Relocation};
pub use runtime::Runtime;
pub use watch::{Use, Watcher};
pub use written::Written;

#[cfg(test)]
mod tests;
