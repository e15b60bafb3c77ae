//! Random numbers on the device, with cuRAND.
//!
//! [`CuRand`] is the cuRAND library, CUDA 11.8 or later. It is loaded at run time: neither
//! compiling nor starting a program requires it. A [`Generator`] has its algorithm as a type
//! parameter, such as [`Philox4x32`] or [`Sobol32`], and belongs to one stream or to the host. It
//! fills memory with raw bits, or with numbers of a uniform, normal, log-normal or Poisson
//! distribution.
//!
//! Every operation checks its arguments before the library is called: the length fits the
//! dimensions and the distribution, and the parameters are in range. Each algorithm has only the
//! methods that it supports.
//!
//! # Example
//!
//! ```
//! # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
//! # let curand = curium_sim_libraries::curand();
//! # /*
//! let driver = Driver::load()?;
//! let curand = CuRand::load()?;
//! # */
//! use curium_memory::DeviceBuffer;
//! use curium_rand::{Generator, Xorwow};
//!
//! let stream = driver.device(0)?.primary_context()?.stream()?;
//! let mut generator = Generator::<Xorwow>::seeded(&curand, &stream, 1)?;
//! let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 100)?;
//! generator.uniform(&mut numbers)?;
//! assert!(numbers.to_vec()?.iter().all(|number| (0.0..=1.0).contains(number)));
//!
//! let error = generator.normal(&mut numbers.slice_mut(..99)?, 0.0, 1.0).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "Generator::normal: odd length (99 elements); pseudo-random normal numbers come in pairs"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod algorithm;
mod error;
mod generator;
mod handle;
mod location;
mod order;
mod real;

pub use curium_sys::curand::{self as sys, CuRand};
pub use curium_sys::load::{LibraryError, LibraryVersion, MissingFunction};

pub use self::algorithm::{
    Algorithm, Bits, Mrg32k3a, Mt19937, Mtgp32, Philox4x32, PseudoRandom, QuasiRandom,
    ScrambledSobol32, ScrambledSobol64, SkipAhead, Sobol32, Sobol64, Xorwow,
};
pub use self::error::{ArgumentError, CallError, Error, Result};
pub use self::generator::Generator;
pub use self::location::{Device, Host, Location};
pub use self::order::GeneratorOrdering;
pub use self::real::Real;
