//! cuBLAS, cuBLASLt and NCCL for simulated devices.
//!
//! [`cublas`] and [`cublaslt`] are libraries for [`curium_blas`] that compute on the CPU. Their operations are enqueued on the streams of a
//! [`Simulator`](curium_sim::Simulator) as kernels are: they run in stream order, become nodes of graphs that are captured, and their
//! accesses are checked for bounds, lifetimes, uninitialized memory and races. Programs that use cuBLAS are tested with it without a GPU.
//!
//! They compute with at least the precision of the type, and their results agree with those of hardware within the error bounds of the
//! operations, not bit for bit. [`nccl`] is a library for [`curium_nccl`] whose ranks are threads of one process. A
//! function that is not simulated is missing from the table: calling it is an error that names the function.
//!
//! ```
//! use curium_blas::{Blas, Matrix, MatrixMut};
//! use curium_driver::Device;
//! use curium_memory::DeviceBuffer;
//!
//! curium_sim::test(|device: Device| {
//!     let stream = device.primary_context()?.stream()?;
//!     let mut blas = Blas::new(&curium_sim_libraries::cublas(), &stream)?;
//!     let a = DeviceBuffer::from_slice(&stream, &[1.0_f64, 2.0, 3.0, 4.0])?;
//!     let mut c = DeviceBuffer::zeroed(&stream, 4)?;
//!     let matrix = Matrix::column_major(&a, 2, 2)?;
//!     blas.gemm(1.0, matrix, matrix.transposed(), 0.0, &mut MatrixMut::column_major(&mut c, 2, 2)?)?;
//!     assert_eq!(c.to_vec()?, [10.0, 14.0, 14.0, 20.0]);
//!     Ok::<(), curium_blas::Error>(())
//! })?;
//! # Ok::<(), curium_blas::Error>(())
//! ```

mod cublas;
mod cublaslt;
mod nccl;

use std::sync::OnceLock;

use curium_blas::CuBlas;
use curium_blas::lt::CuBlasLt;
use curium_nccl::Nccl;

pub use self::nccl::{NcclFault, live_communicators};

/// Returns cuBLAS for simulated devices: version 13.10, without the functions that are not simulated.
///
/// # Panics
///
/// Never: the library reports its version.
#[must_use]
pub fn cublas() -> CuBlas {
    static LIBRARY: OnceLock<CuBlas> = OnceLock::new();
    // SAFETY: the functions are those of this crate, which implement what cuBLAS gives to their names, and live as long as the program.
    let load = || unsafe { CuBlas::from_api(cublas::api()) };
    LIBRARY.get_or_init(|| load().expect("the library reports its version")).clone()
}

/// Returns cuBLASLt for simulated devices: version 13.10, without the functions that are not simulated.
///
/// It offers up to three algorithms for a product, one of which needs a workspace.
///
/// # Panics
///
/// Never: the library reports its version.
#[must_use]
pub fn cublaslt() -> CuBlasLt {
    static LIBRARY: OnceLock<CuBlasLt> = OnceLock::new();
    // SAFETY: the functions are those of this crate, which implement what cuBLASLt gives to their names, and live as long as the program.
    let load = || unsafe { CuBlasLt::from_api(cublaslt::api()) };
    LIBRARY.get_or_init(|| load().expect("the library reports its version")).clone()
}

/// Returns NCCL for simulated devices: version 2.32, for ranks that are threads of one process, or the devices of one thread, without the
/// functions that are not simulated.
///
/// Operations are matched by their number, as NCCL requires. A rank that calls another operation than the others, or one with another
/// length, gets an error that names both, and the others get it as an asynchronous error. [`NcclFault`] makes a rank fail.
///
/// # Panics
///
/// Never: the library reports its version.
#[must_use]
pub fn nccl() -> Nccl {
    static LIBRARY: OnceLock<Nccl> = OnceLock::new();
    // SAFETY: the functions are those of this crate, which implement what NCCL gives to their names, and live as long as the program.
    let load = || unsafe { Nccl::from_api(nccl::api()) };
    LIBRARY.get_or_init(|| load().expect("the library reports its version")).clone()
}
