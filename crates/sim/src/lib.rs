//! The CUDA driver on the CPU: the same ABI, real kernels, faults on request.

pub mod exec;

pub mod ptx;
