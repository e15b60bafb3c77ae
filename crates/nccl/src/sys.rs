//! The functions of NCCL under their C names, and the types of their parameters.
//!
//! All calls are `unsafe`, with the preconditions of C. Versions are those of NCCL.

use curium_driver::sys::declare_api;

use crate::generated::nccl::functions::for_each_nccl_function;
pub use crate::generated::nccl::types::*;

for_each_nccl_function!(declare_api);
