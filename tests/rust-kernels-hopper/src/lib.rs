//! Kernels in safe Rust for the Hopper architecture, for tests on the simulator.

#![no_std]
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "the kernels have comments, and their launchers are private to the tests"
)]

pub mod clusters;
pub mod gemm;
pub mod grids;
pub mod tensors;

#[cfg(not(target_arch = "nvptx64"))]
curium_kernel::include_kernels!("kernels");
