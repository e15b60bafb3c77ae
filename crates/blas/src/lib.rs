//! Linear algebra on the device, with cuBLAS and cuBLASLt.
//!
//! [`CuBlas`] is the library of this machine, of any version since CUDA 11.8. It is loaded at run
//! time: neither compiling nor starting a program requires it. A [`Blas`] is a handle on one
//! stream, with its workspace. Matrices and vectors are views of device memory ([`Matrix`],
//! [`Banded`], [`Packed`], [`Vector`]).
//!
//! Operations are generic: `f32`, `f64`, [`Complex32`] and [`Complex64`] have the same methods.
//! Where the reference BLAS has two operations that are one for real elements, such as `symv` and
//! `hemv`, both exist for every type.
//!
//! Every operation checks its operands before the library is called: the shapes agree, and each
//! last element is in its memory. The borrow checker guarantees that outputs alias no input. Sizes
//! beyond 32 bits call the 64-bit functions of CUDA 12.0. Operations on empty matrices do nothing.
//!
//! [`lt`] contains matrix products as plans of cuBLASLt, with epilogues such as a bias and an
//! activation, and with a choice of algorithms.
//!
//! # Features
//!
//! `float8` (not on by default) adds products of matrices of `float8::F8E4M3` and `float8::F8E5M2`
//! with cuBLASLt.
//!
//! `half` (not on by default) adds products of matrices of `half::f16` and `half::bf16`.
//!
//! # Example
//!
//! ```
//! # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
//! # let cublas = curium_sim_libraries::cublas();
//! # /*
//! let driver = Driver::load()?;
//! let cublas = CuBlas::load()?;
//! # */
//! use curium_blas::{Blas, Vector, VectorMut};
//! use curium_memory::DeviceBuffer;
//!
//! let stream = driver.device(0)?.primary_context()?.stream()?;
//! let mut blas = Blas::new(&cublas, &stream)?;
//! let x = DeviceBuffer::from_slice(&stream, &[1.0, 2.0, 3.0])?;
//! let mut y = DeviceBuffer::from_slice(&stream, &[10.0, 20.0, 30.0])?;
//! blas.axpy(2.0, Vector::new(&x), &mut VectorMut::new(&mut y))?;
//! assert_eq!(y.to_vec()?, [12.0, 24.0, 36.0]);
//! assert_eq!(blas.dot(Vector::new(&x), Vector::new(&x))?, 14.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod banded;
mod blas;
mod element;
mod error;
mod handle;
mod layout;
mod level1;
mod level2;
mod level3;
pub mod lt;
mod matrix;
mod operand;
mod packed;
mod routines;
mod stored;
mod triangle;
mod vector;
mod view;

pub use curium_sys::cublas::{self as sys, CuBlas};
pub use curium_sys::load::{LibraryError, LibraryVersion, MissingFunction};
pub use num_complex::{Complex32, Complex64};

pub use self::banded::{BandLayout, Banded};
pub use self::blas::{Blas, MathMode};
pub use self::element::{Element, RealElement};
pub use self::error::{CallError, Error, PlanError, Result, ShapeError};
pub use self::layout::{MatrixLayout, Order};
pub use self::level1::{ModifiedRotation, Rotation};
pub use self::level3::{Batches, GemmGroup, Grouped, Mixed};
pub use self::matrix::{Matrix, MatrixMut};
pub use self::operand::{DeviceScalar, ScalarArgument};
pub use self::packed::{Packed, PackedMut};
pub use self::triangle::{Diagonal, Side, Triangle};
pub use self::vector::{Vector, VectorMut};

/// Returns a device address as C's pointer.
fn device_pointer(address: curium_driver::sys::CUdeviceptr) -> *mut std::ffi::c_void {
    std::ptr::without_provenance_mut(address as usize)
}
