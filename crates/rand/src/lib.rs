//! The functions of cuRAND, loaded at run time.
//!
//! [`CuRand`] finds the library of this machine, of any version since CUDA 11.8, and gives its functions under their C names ([`sys`]).
//! Neither is required to compile or start a program.
//!
//! ```no_run
//! use curium_rand::CuRand;
//!
//! let library = CuRand::load()?;
//! println!("cuRAND {}", library.version());
//! # Ok::<(), curium_rand::Error>(())
//! ```

mod error;
mod generated;
mod library;
pub mod sys;

pub use curium_driver::sys::load::{LibraryVersion, MissingFunction};

pub use self::error::{CallError, Error, Result};
pub use self::library::CuRand;
