//! Fourier transforms on the device, with cuFFT.
//!
//! [`CuFft`] is the library of this machine, of any version since CUDA 11.8. It is loaded at run
//! time: neither compiling nor starting a program requires it. A [`Plan`] transforms data of one
//! [`Shape`]: 1 to 3 dimensions, any number of batches, and any strides. Its types determine the
//! transform: `Plan<Complex32, Complex32>`, `Plan<f32, Complex32>` or `Plan<Complex32, f32>`, and
//! the same for `f64`.
//!
//! Every transform checks its memory before the library is called: all elements of the plan are
//! within bounds, and elements of the output do not overlap. The borrow checker guarantees that the
//! output aliases no input. Lengths have 64 bits.
//!
//! Callbacks (`cufftXtSetJITCallback`, `cufftXtSetCallback`) are not wrapped, because they run
//! device code inside a transform whose accesses cannot be checked. Transforms on several devices
//! (`cufftXtSetGPUs`, `cufftXtMalloc`) are not wrapped either. [`sys`] declares these functions,
//! and [`Plan::as_raw`] returns the handle.
//!
//! # Features
//!
//! `half` (not on by default) adds transforms of `half::f16`, whose lengths are powers of two.
//!
//! # Example
//!
//! ```
//! # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
//! # let cufft = curium_sim_libraries::cufft();
//! # /*
//! let driver = Driver::load()?;
//! let cufft = CuFft::load()?;
//! # */
//! use curium_fft::{Complex64, Plan, Shape};
//! use curium_memory::DeviceBuffer;
//!
//! let stream = driver.device(0)?.primary_context()?.stream()?;
//! let mut plan = Plan::<f64, Complex64>::new(&cufft, &stream, &Shape::new([8]).with_batches(2))?;
//! let signals = DeviceBuffer::from_slice(&stream, &[1.0; 16])?;
//! let mut spectra = DeviceBuffer::zeroed(&stream, plan.output_len())?;
//! plan.forward(&signals, &mut spectra)?;
//! assert_eq!(spectra.to_vec()?[5], Complex64::new(8.0, 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod element;
mod error;
mod handle;
mod layout;
mod operand;
mod plan;
mod shape;

pub use curium_sys::cufft::{self as sys, CuFft};
pub use curium_sys::load::{LibraryError, LibraryVersion, MissingFunction};
pub use num_complex::{Complex, Complex32, Complex64};

pub use self::element::{Real, Transform};
pub use self::error::{CallError, Error, Result, ShapeError};
pub use self::plan::Plan;
pub use self::shape::{Embedding, Shape};
