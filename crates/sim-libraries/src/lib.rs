//! cuBLAS, cuBLASLt, cuRAND, cuFFT and NCCL for simulated devices.
//!
//! [`cublas`], [`cublaslt`], [`curand`], [`cufft`] and [`nccl()`] are libraries for [`curium_blas`], [`curium_rand`], [`curium_fft`] and
//! [`curium_nccl`] that compute on the CPU. Their operations are enqueued on the streams of a [`Simulator`](curium_sim::Simulator) like
//! kernels: they run in stream order, become nodes of captured graphs, and their accesses are checked for bounds, lifetimes, uninitialized
//! memory and races. Programs that use these libraries can therefore be tested without a GPU.
//!
//! They compute with at least the precision of the type. Their results agree with those of hardware within the error bounds of the
//! operations, but not bit for bit. Random numbers have the right distributions, but not the sequences of cuRAND. A function that is not
//! simulated is missing from the table: calling it is an error that names the function.
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
//!
//! # Features
//!
//! `export` (not on by default) exports the functions of the driver and of these libraries under their C names, for the shared library that
//! replaces `libcuda.so.1`, `libcublas.so.13` and their like. A function that is not simulated returns the library's code for that, and its
//! first call is reported on stderr.

mod cublas;
mod cublaslt;
mod cufft;
mod curand;
#[cfg(feature = "export")]
mod export;
mod nccl;
mod own_memory;

use std::sync::OnceLock;

use curium_blas::CuBlas;
use curium_blas::lt::CuBlasLt;
use curium_fft::CuFft;
use curium_nccl::Nccl;
use curium_rand::CuRand;

pub use self::nccl::{NcclFault, live_communicators, live_registrations};

/// Returns cuBLAS for simulated devices: version 13.10, without the functions that are not simulated.
///
/// # Panics
///
/// Never: the library reports its version.
#[must_use]
pub fn cublas() -> CuBlas {
    static LIBRARY: OnceLock<CuBlas> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            // SAFETY: the functions are those of this crate, which implement what cuBLAS gives to their names, and live as long as the program.
            unsafe { CuBlas::from_api(cublas::api()) }.expect("the library reports its version")
        })
        .clone()
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
    LIBRARY
        .get_or_init(|| {
            // SAFETY: the functions are those of this crate, which implement what cuBLASLt gives to their names, and live as long as the program.
            unsafe { CuBlasLt::from_api(cublaslt::api()) }.expect("the library reports its version")
        })
        .clone()
}

/// Returns cuRAND for simulated devices: version 10.4, without the functions that are not simulated.
///
/// The algorithms are the published ones, except that MTGP32 is MT19937. The numbers are **not the sequences of cuRAND**, which has its own
/// seeding and order.
///
/// # Panics
///
/// Never: the library reports its version.
#[must_use]
pub fn curand() -> CuRand {
    static LIBRARY: OnceLock<CuRand> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            // SAFETY: the functions are those of this crate, which implement what cuRAND gives to their names, and live as long as the program.
            unsafe { CuRand::from_api(curand::api()) }.expect("the library reports its version")
        })
        .clone()
}

/// Returns cuFFT for simulated devices: version 12.0, without the functions that are not simulated.
///
/// Transforms are not normalized, as those of cuFFT. A transform from complex to real numbers overwrites its input.
///
/// # Panics
///
/// Never: the library reports its version.
#[must_use]
pub fn cufft() -> CuFft {
    static LIBRARY: OnceLock<CuFft> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            // SAFETY: the functions are those of this crate, which implement what cuFFT gives to their names, and live as long as the program.
            unsafe { CuFft::from_api(cufft::api()) }.expect("the library reports its version")
        })
        .clone()
}

/// Returns NCCL for simulated devices: version 2.32, without the functions that are not simulated. Ranks are processes of one machine,
/// threads of a process, or the devices of a thread.
///
/// A device is that of its number in every process: processes whose simulators have several devices use different ones, as on hardware.
/// Processes exchange data over the loopback interface. If one dies, the ranks of the others get `ncclRemoteError`, which names it.
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
    LIBRARY
        .get_or_init(|| {
            // SAFETY: the functions are those of this crate, which implement what NCCL gives to their names, and live as long as the program.
            unsafe { Nccl::from_api(nccl::api()) }.expect("the library reports its version")
        })
        .clone()
}
