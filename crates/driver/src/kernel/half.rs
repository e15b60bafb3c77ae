//! 16-bit floating-point numbers as kernel parameters.

use half::{bf16, f16};

use super::signature::ByValue;

// SAFETY: the type is `repr(transparent)` over `u16` and has the bit layout of CUDA's `__half`.
unsafe impl ByValue for f16 {}

// SAFETY: the type is `repr(transparent)` over `u16` and has the bit layout of CUDA's
// `__nv_bfloat16`.
unsafe impl ByValue for bf16 {}
