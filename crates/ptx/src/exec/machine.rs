//! The machine: programs as the executor reads them, and the state of a launch, from the grid to
//! the warp.

pub(crate) mod access_pattern_cache;
pub(crate) mod barrier;
pub(crate) mod block_state;
pub(crate) mod cluster;
pub(crate) mod launch;
pub(crate) mod loops;
pub(crate) mod members;
pub(crate) mod objects;
pub(crate) mod op;
pub(crate) mod program;
pub(crate) mod runtime;
pub(crate) mod runtime_use;
pub(crate) mod superinstruction;
pub(crate) mod tensor_memory;
pub(crate) mod unit;
pub(crate) mod warp_state;
