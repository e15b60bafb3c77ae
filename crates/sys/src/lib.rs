//! The C ABI of the CUDA driver: generated types, one table of functions, and the loader of NVIDIA's libraries.
//!
//! This crate contains no policy:
//!
//! - **Types** ([`CUresult`], [`CUcontext`], …) are generated from NVIDIA's newest header, with every symbol that CUDA
//!   has ever exported. The ABI of a symbol never changes, so one set of declarations serves every driver since CUDA
//!   11.8, and no Cargo feature selects a CUDA version. C enums are open newtypes: an unknown value from a newer driver
//!   is not undefined behavior.
//! - **Functions** form one generated list, [`for_each_function!`]. [`Function`] is the name of one of them, and
//!   [`Api`] is the table of their addresses. [`Function::since`] returns the [`CudaVersion`] that introduced it.
//! - **Loading** has three entry points: [`Api::load`] searches the machine, [`Api::load_from`] opens one file, and
//!   [`Api::from_resolver`] takes addresses from any source, such as a simulator. None of them calls `cuInit`. The
//!   module `load` contains the generic loader for NVIDIA's other libraries.
//!
//! Names are those of C, so NVIDIA's driver API reference applies to them. All calls are `unsafe`, with the
//! preconditions of C. `curium-driver` is the safe layer.
//!
//! # Features
//!
//! `load` (default) adds the loader and requires `std`. Without it the crate is `no_std`.
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
mod enumerator;
mod function;
mod generated;
#[cfg(feature = "load")]
pub mod load;
mod privileges;
mod table;

pub use self::api::{Api, ApiProvider, FromProvider, MissingFunction};
pub use self::constants::*;
#[doc(hidden)]
pub use self::enumerator::write_enumerator;
pub use self::function::{Function, UnknownFunction};
pub use self::generated::types::*;
pub use self::privileges::has_raised_privileges;
pub use self::table::{ExportedFunction, FunctionTable};
pub use curium_format::{CudaVersion, PtxVersion};

const _: () = assert!(
    CudaVersion::NEWEST_KNOWN.as_raw() == CUDA_VERSION,
    "xtask/ptx-versions.toml lacks the PTX version of the newest CUDA version"
);
