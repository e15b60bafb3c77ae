//! The execution of a launch: workers run blocks, blocks run warps, and warps run fragments.

pub(crate) mod aligned;
pub(crate) mod block;
pub(crate) mod facts;
pub(crate) mod fragment;
pub(crate) mod grid;
pub(crate) mod loop_samples;
pub(crate) mod meeting;
pub(crate) mod transfer;
pub(crate) mod warp;
pub(crate) mod worker;
