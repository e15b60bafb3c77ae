//! The C ABI of the CUDA driver: generated types, one table of functions, and the loader.
//!
//! This crate holds no policy. It declares what `libcuda` exports and finds it:
//!
//! - **Types** ([`CUresult`], [`CUcontext`], …) are generated from NVIDIA's newest header with every symbol that CUDA ever
//!   exported declared. A symbol of the ABI never changes its meaning, so one set of declarations serves every driver from
//!   CUDA 11.8 on, and no Cargo feature selects a CUDA version. C enums are open newtypes: a value that a newer driver
//!   returns is never undefined behaviour.
//! - **Functions** are one generated list, [`for_each_function!`]. [`Function`] names one of them, [`Api`] is the table of
//!   their addresses, and each knows the [`CudaVersion`] that introduced it.
//! - **Loading** has three doors: [`Api::load`] searches the machine, [`Api::load_from`] opens one file, and
//!   [`Api::from_resolver`] takes any source of addresses, such as a simulator. None of them initialises the driver:
//!   `cuInit` is left to the caller.
//!
//! Names are C's, so that NVIDIA's reference is the reference for them. All calls are `unsafe`: their preconditions are
//! C's. `curium-driver` is the safe layer.
//!
//! # Features
//!
//! `load` (default) adds the loader and needs `std`. Without it the crate is `no_std`.
//!
//! # Example
//!
//! ```no_run
//! use curium_sys::{Api, CUresult};
//!
//! let api = Api::load()?;
//! let init = api.cuInit.ok_or_else(|| api.missing(curium_sys::Function::cuInit, None))?;
//! // SAFETY: `cuInit` takes no pointer, and 0 is its only valid argument.
//! assert_eq!(unsafe { init(0) }, CUresult::CUDA_SUCCESS);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

#[cfg(any(feature = "load", test))]
extern crate std;

mod api;
mod constants;
mod function;
mod generated;
#[cfg(feature = "load")]
mod load;
mod version;

pub use self::api::{Api, ApiProvider, FromProvider, MissingFunction};
pub use self::constants::*;
pub use self::function::{Function, UnknownFunction};
pub use self::generated::types::*;
#[cfg(feature = "load")]
#[doc(hidden)]
pub use self::load::has_raised_privileges;
#[cfg(feature = "load")]
pub use self::load::{Attempt, LoadError, Rejection};
pub use self::version::CudaVersion;
