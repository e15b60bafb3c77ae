//! Kernels in safe Rust, for tests on the simulator.

#![no_std]
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "the kernels have comments, and their launchers are private to the tests"
)]

pub mod algorithms;
pub mod features;
pub mod gemm;
pub mod launching;
pub mod learning;
pub mod model;
pub mod numeric;
pub mod signal;
pub mod sorting;
pub mod soundness;
pub mod sparse;
pub mod tensor_cores;

#[cfg(not(target_arch = "nvptx64"))]
curium_kernel::include_kernels!("kernels");
