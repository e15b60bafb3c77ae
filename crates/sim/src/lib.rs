//! The CUDA driver on the CPU: the same ABI, real kernels, faults on request.

pub mod ptx;
