//! The functions of cuBLAS under their C names, and the types of their parameters.
//!
//! All calls are `unsafe`, with the preconditions of C.

use curium_driver::sys::declare_api;

use crate::generated::cublas::functions::for_each_cublas_function;
pub use crate::generated::cublas::types::*;

for_each_cublas_function!(declare_api);

pub mod lt {
    //! The functions of cuBLASLt under their C names, with types of [`super`].

    use curium_driver::sys::declare_api;

    use super::*;
    use crate::generated::cublas::lt_functions::for_each_cublaslt_function;

    for_each_cublaslt_function!(declare_api);
}
