//! The functions of the libraries under their C names, for the shared library that takes the place
//! of NVIDIA's.
//!
//! All functions of the generated lists are exported, so that every program finds its symbols. One
//! that is not simulated returns the library's code for that, and is reported once on stderr.

use std::collections::HashSet;
use std::ffi::c_char;
use std::ptr;

use curium_sys::cublas::cublasStatus_t;
use curium_sys::cufft::cufftResult;
use curium_sys::cupti::CUptiResult;
use curium_sys::curand::curandStatus_t;
use curium_sys::nccl::ncclResult_t;
use parking_lot::Mutex;

/// The result of a function that is not simulated.
trait NotSimulated {
    const RESULT: Self;
}

impl NotSimulated for cublasStatus_t {
    const RESULT: Self = Self::CUBLAS_STATUS_NOT_SUPPORTED;
}

impl NotSimulated for cufftResult {
    const RESULT: Self = Self::CUFFT_NOT_SUPPORTED;
}

/// cuRAND has no code for unsupported functions.
impl NotSimulated for curandStatus_t {
    const RESULT: Self = Self::CURAND_STATUS_INTERNAL_ERROR;
}

impl NotSimulated for CUptiResult {
    const RESULT: Self = Self::CUPTI_ERROR_NOT_SUPPORTED;
}

impl NotSimulated for ncclResult_t {
    const RESULT: Self = Self::ncclInvalidUsage;
}

impl NotSimulated for *const c_char {
    const RESULT: Self = ptr::null();
}

impl NotSimulated for usize {
    const RESULT: Self = 0;
}

impl NotSimulated for u32 {
    const RESULT: Self = 0;
}

impl NotSimulated for () {
    const RESULT: Self = ();
}

/// Returns the result of a function that is not simulated, and reports its first call.
#[expect(
    clippy::print_stderr,
    reason = "a code does not name the function, and C has no other channel for the message"
)]
fn not_simulated<T: NotSimulated>(name: &'static str) -> T {
    static REPORTED: Mutex<Option<HashSet<&str>>> = Mutex::new(None);
    if REPORTED.lock().get_or_insert_default().insert(name) {
        eprintln!("curium-sim: {name}: not simulated");
    }
    T::RESULT
}

/// Exports the functions of a generated list. The enclosing module has the table `API`.
macro_rules! export {
    ($(fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) -> $result:ty = $since:literal $(..= $last:literal)?;)*) => {
        $(
            // SAFETY: no other symbol of a process that loads this library in place of NVIDIA's has
            // this name.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($parameter: $ty),*) -> $result {
                match API.$name {
                    // SAFETY: the caller upholds the contract of the C function.
                    Some(function) => unsafe { function($($parameter),*) },
                    None => super::not_simulated(stringify!($name)),
                }
            }
        )*
    };
}

#[allow(
    non_snake_case,
    clippy::unused_unit,
    reason = "these are C's names and result types"
)]
mod cublas {
    //! cuBLAS.

    use std::sync::LazyLock;

    use curium_sys::cublas::*;

    static API: LazyLock<Api> = LazyLock::new(crate::cublas::api);

    curium_sys::for_each_cublas_function!(export);
}

#[allow(
    non_snake_case,
    clippy::unused_unit,
    reason = "these are C's names and result types"
)]
mod cublaslt {
    //! cuBLASLt.

    use std::sync::LazyLock;

    use curium_sys::cublas::lt::Api;
    use curium_sys::cublas::*;

    static API: LazyLock<Api> = LazyLock::new(crate::cublaslt::api);

    curium_sys::for_each_cublaslt_function!(export);
}

#[allow(
    non_snake_case,
    clippy::unused_unit,
    reason = "these are C's names and result types"
)]
mod cufft {
    //! cuFFT.

    use std::sync::LazyLock;

    use curium_sys::cufft::*;

    static API: LazyLock<Api> = LazyLock::new(crate::cufft::api);

    curium_sys::for_each_cufft_function!(export);
}

#[allow(
    non_snake_case,
    clippy::unused_unit,
    reason = "these are C's names and result types"
)]
mod cupti {
    //! The activity API of CUPTI.

    use std::sync::LazyLock;

    use curium_sys::cupti::*;

    static API: LazyLock<Api> = LazyLock::new(crate::cupti::api);

    curium_sys::for_each_cupti_function!(export);
}

#[allow(
    non_snake_case,
    clippy::unused_unit,
    reason = "these are C's names and result types"
)]
mod curand {
    //! cuRAND.

    use std::sync::LazyLock;

    use curium_sys::curand::*;

    static API: LazyLock<Api> = LazyLock::new(crate::curand::api);

    curium_sys::for_each_curand_function!(export);
}

#[allow(
    non_snake_case,
    clippy::unused_unit,
    reason = "these are C's names and result types"
)]
mod nccl {
    //! NCCL.

    use std::sync::LazyLock;

    use curium_sys::nccl::*;

    static API: LazyLock<Api> = LazyLock::new(crate::nccl::api);

    curium_sys::for_each_nccl_function!(export);
}
