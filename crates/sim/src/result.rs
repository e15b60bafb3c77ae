//! The result of a C function.

use curium_sys::CUresult;

/// The result of a C function: `Err` holds every code but success.
pub(crate) type Result<T = ()> = std::result::Result<T, CUresult>;
