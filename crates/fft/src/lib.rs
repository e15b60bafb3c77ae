//! The functions of cuFFT, loaded at run time.
//!
//! [`CuFft`] finds the library of this machine, of any version since CUDA 11.8, and gives its functions under their C names ([`sys`]).
//! Neither is required to compile or start a program.
//!
//! ```no_run
//! use curium_fft::CuFft;
//!
//! let library = CuFft::load()?;
//! println!("cuFFT {}", library.version());
//! # Ok::<(), curium_fft::Error>(())
//! ```

mod error;
mod generated;
mod library;
pub mod sys;

pub use curium_driver::sys::load::{LibraryVersion, MissingFunction};

pub use self::error::{CallError, Error, Result};
pub use self::library::CuFft;
