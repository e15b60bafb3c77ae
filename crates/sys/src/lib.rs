//! The C ABI of the CUDA driver and of NVIDIA's libraries: generated types, one table of functions
//! for each, and the loader.
//!
//! This crate contains no policy:
//!
//! - **Types** ([`CUresult`], [`CUcontext`], …) are generated from NVIDIA's newest header, with
//!   every symbol that CUDA has ever exported. The ABI of a symbol never changes, so one set of
//!   declarations serves every driver since CUDA 11.8, and no Cargo feature selects a CUDA version.
//!   C enums are open newtypes: an unknown value from a newer driver is not undefined behavior.
//! - **Functions** form one generated list, [`for_each_function!`]. [`Function`] is the name of one
//!   of them, and [`Api`] is the table of their addresses. [`Function::since`] returns the
//!   [`CudaVersion`] that introduced it.
//! - **Loading** has three entry points: [`Api::load`] searches the machine, [`Api::load_from`]
//!   opens one file, and [`Api::from_resolver`] takes addresses from any source, such as a
//!   simulator. None of them calls `cuInit`. The module `load` contains the generic loader for
//!   NVIDIA's other libraries.
//! - **Libraries**: the modules `cublas`, `cufft`, `curand`, `nccl`, `nvjitlink` and `nvrtc`
//!   declare their types and functions from their headers in the same way, with the type of the
//!   loaded library and the classes of its codes.
//!
//! Names are those of C, so NVIDIA's references apply to them. All calls are `unsafe`, with the
//! preconditions of C. `curium-driver` is the safe layer.
//!
//! # Features
//!
//! `load` (default) adds the loader and requires `std`. Without it the crate is `no_std`.
//!
//! `cublas` (with cuBLASLt), `cufft`, `cupti`, `curand`, `nccl`, `nvjitlink` and `nvrtc` (not on by
//! default) add the module of their library, and `load`. A program that uses only the driver
//! compiles none of them.
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
#[cfg(feature = "cublas")]
pub mod cublas;
#[cfg(feature = "cufft")]
pub mod cufft;
#[cfg(feature = "cupti")]
pub mod cupti;
#[cfg(feature = "curand")]
pub mod curand;
mod enumerator;
mod function;
mod generated;
#[cfg(feature = "load")]
pub mod load;
#[cfg(feature = "nccl")]
pub mod nccl;
#[cfg(feature = "nvjitlink")]
pub mod nvjitlink;
#[cfg(feature = "nvrtc")]
pub mod nvrtc;
mod privileges;
mod status;
mod table;

pub use self::api::{Api, ApiProvider, FromProvider, MissingFunction};
pub use self::constants::*;
#[doc(hidden)]
pub use self::enumerator::write_enumerator;
pub use self::function::{Function, UnknownFunction};
pub use self::generated::types::*;
pub use self::privileges::has_raised_privileges;
pub use self::status::{ErrorClass, LibraryStatus};
pub use self::table::{ExportedFunction, FunctionTable};
pub use curium_format::{CudaVersion, PtxVersion};

const _: () = assert!(
    CudaVersion::NEWEST_KNOWN.as_raw() == CUDA_VERSION,
    "xtask/ptx-versions.toml lacks the PTX version of the newest CUDA version"
);
