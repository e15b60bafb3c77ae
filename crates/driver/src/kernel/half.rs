//! Numbers of 16 bits as parameters of kernels.

use half::{bf16, f16};

use super::signature::ByValue;

// SAFETY: it is `repr(transparent)` over `u16`, with the bits of CUDA's `__half`.
unsafe impl ByValue for f16 {}

// SAFETY: it is `repr(transparent)` over `u16`, with the bits of CUDA's `__nv_bfloat16`.
unsafe impl ByValue for bf16 {}
