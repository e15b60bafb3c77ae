//! The driver: one file per CUDA object, each with the C functions of that object as methods under their C names.
//!
//! A method receives the unchecked arguments of the C function, and returns `Ok` or the code. It checks handles and null pointers. The
//! steps that all calls have in common are in [`Driver::admit`].

use curium_sys::CUresult;

/// The result of a C function: `Err` holds every code but success.
pub(crate) type Result<T = ()> = std::result::Result<T, CUresult>;
