//! The functions of cuRAND under their C names, and the types of their parameters.
//!
//! All calls are `unsafe`, with the preconditions of C.

use curium_driver::sys::declare_api;

use crate::generated::curand::functions::for_each_curand_function;
pub use crate::generated::curand::types::*;

for_each_curand_function!(declare_api);
