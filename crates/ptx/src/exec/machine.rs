//! The machine: programs as the executor reads them, and the state of a launch, from the grid to the warp and its fragments.

pub(crate) mod aligned;
pub(crate) mod barrier;
pub(crate) mod block;
pub(crate) mod cluster;
pub(crate) mod fragment;
pub(crate) mod frame;
pub(crate) mod grid;
pub(crate) mod members;
pub(crate) mod objects;
pub(crate) mod op;
pub(crate) mod program;
pub(crate) mod runtime;
pub(crate) mod runtime_use;
pub(crate) mod unit;
pub(crate) mod warp;
pub(crate) mod worker;
