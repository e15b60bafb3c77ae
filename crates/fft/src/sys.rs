//! The functions of cuFFT under their C names, and the types of their parameters.
//!
//! All calls are `unsafe`, with the preconditions of C.

use curium_driver::sys::declare_api;

use crate::generated::cufft::functions::for_each_cufft_function;
pub use crate::generated::cufft::types::*;

for_each_cufft_function!(declare_api);
