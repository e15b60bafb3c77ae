//! cuBLAS, cuBLASLt, cuRAND, cuFFT, NCCL and the activity API of CUPTI for simulated devices.
//!
//! [`cublas`], [`cublaslt`], [`curand`], [`cufft`] and [`nccl()`] are libraries for `curium-blas`,
//! `curium-rand`, `curium-fft` and `curium-nccl` that compute on the CPU. Their operations are
//! enqueued on the streams of a [`Simulator`](curium_sim::Simulator) like kernels: they run in
//! stream order, become nodes of captured graphs, and their accesses are checked for bounds,
//! lifetimes, uninitialized memory and races. Programs that use these libraries can therefore be
//! tested without a GPU.
//!
//! They compute with at least the precision of the type. Their results agree with those of hardware
//! within the error bounds of the operations, but not bit for bit. Random numbers have the right
//! distributions, but not the sequences of cuRAND. A function that is not simulated is missing from
//! the table: calling it is an error that names the function.
//!
//! ```
//! let cublas = curium_sim_libraries::cublas();
//! assert_eq!(cublas.version().major, 13);
//! // With `curium-blas`: `Blas::new(&cublas, &stream)?`.
//! ```
//!
//! The functions are those of the [`curium_sys`] bindings, which are generated from NVIDIA's
//! headers. The crates for the libraries are not used: an error in the C calls of such a crate does
//! not agree with the simulation.
//!
//! # Features
//!
//! `export` (not on by default) exports the functions of the driver and of these libraries under
//! their C names, for the shared library that replaces `libcuda.so.1`, `libcublas.so.13` and their
//! like. A function that is not simulated returns the library's code for that, and its first call
//! is reported on stderr.

mod cublas;
mod cublaslt;
mod cufft;
mod cupti;
mod curand;
#[cfg(feature = "export")]
mod export;
mod generated;
mod nccl;
mod own_memory;

use std::sync::OnceLock;

use curium_sys::cublas::CuBlas;
use curium_sys::cublas::lt::CuBlasLt;
use curium_sys::cufft::CuFft;
use curium_sys::cupti::Cupti;
use curium_sys::curand::CuRand;
use curium_sys::nccl::Nccl;

pub use self::nccl::{NcclFault, live_communicators, live_registrations};

/// Returns cuBLAS for simulated devices: version 13.10, without the functions that are not
/// simulated.
///
/// # Panics
///
/// Never: the library reports its version.
#[must_use]
pub fn cublas() -> CuBlas {
    static LIBRARY: OnceLock<CuBlas> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            // SAFETY: the functions are those of this crate, which implement what cuBLAS gives to
            // their names, and live as long as the program.
            unsafe { CuBlas::from_api(cublas::api()) }.expect("the library reports its version")
        })
        .clone()
}

/// Returns cuBLASLt for simulated devices: version 13.10, without the functions that are not
/// simulated.
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
            // SAFETY: the functions are those of this crate, which implement what cuBLASLt gives to
            // their names, and live as long as the program.
            unsafe { CuBlasLt::from_api(cublaslt::api()) }.expect("the library reports its version")
        })
        .clone()
}

/// Returns cuRAND for simulated devices: version 10.4, without the functions that are not
/// simulated.
///
/// The algorithms are the published ones, except that MTGP32 is MT19937. The numbers are **not the
/// sequences of cuRAND**, which has its own seeding and order.
///
/// # Panics
///
/// Never: the library reports its version.
#[must_use]
pub fn curand() -> CuRand {
    static LIBRARY: OnceLock<CuRand> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            // SAFETY: the functions are those of this crate, which implement what cuRAND gives to
            // their names, and live as long as the program.
            unsafe { CuRand::from_api(curand::api()) }.expect("the library reports its version")
        })
        .clone()
}

/// Returns cuFFT for simulated devices: version 12.0, without the functions that are not simulated.
///
/// Transforms are not normalized, as those of cuFFT. A transform from complex to real numbers
/// overwrites its input.
///
/// # Panics
///
/// Never: the library reports its version.
#[must_use]
pub fn cufft() -> CuFft {
    static LIBRARY: OnceLock<CuFft> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            // SAFETY: the functions are those of this crate, which implement what cuFFT gives to
            // their names, and live as long as the program.
            unsafe { CuFft::from_api(cufft::api()) }.expect("the library reports its version")
        })
        .clone()
}

/// Returns the activity API of CUPTI for simulated devices: version 13.5. `Trace::with_activities`
/// of `curium-diagnostics` uses it.
///
/// It records kernels, copies, fills, allocations and the waits of streams for events, of every
/// simulator of this process. Times are those of the simulation, which say nothing about hardware.
/// As on hardware, one client at a time can be attached.
///
/// # Panics
///
/// Never: the library reports its version.
#[must_use]
pub fn cupti() -> Cupti {
    static LIBRARY: OnceLock<Cupti> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            // SAFETY: the functions are those of this crate, which implement what CUPTI gives to
            // their names, and live as long as the program.
            unsafe { Cupti::from_api(cupti::api()) }.expect("the library reports its version")
        })
        .clone()
}

/// Returns NCCL for simulated devices, as `curium_nccl::Nccl` or [`curium_sys::nccl::Nccl`]:
/// version 2.32, without the functions that are not simulated. Ranks are processes of one machine,
/// threads of a process, or the devices of a thread.
///
/// A device is that of its number in every process: processes whose simulators have several devices
/// use different ones, as on hardware. Processes exchange data over the loopback interface. If one
/// dies, the ranks of the others get `ncclRemoteError`, which names it.
///
/// Operations are matched by their number, as NCCL requires. A rank that calls another operation
/// than the others, or one with another length, gets an error that names both, and the others get
/// it as an asynchronous error. [`NcclFault`] makes a rank fail.
///
/// # Panics
///
/// Never: the library reports its version.
#[must_use]
pub fn nccl<L: From<Nccl>>() -> L {
    static LIBRARY: OnceLock<Nccl> = OnceLock::new();
    LIBRARY
        .get_or_init(|| {
            // SAFETY: the functions are those of this crate, which implement what NCCL gives to
            // their names, and live as long as the program.
            unsafe { Nccl::from_api(nccl::api()) }.expect("the library reports its version")
        })
        .clone()
        .into()
}
