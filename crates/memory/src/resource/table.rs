//! Resources for other languages, and of other languages.

mod export;
mod external;

use std::ffi::c_void;

use curium_driver::sys::{CUdeviceptr, CUresult, CUstream};

pub use self::external::ExternalResource;

/// A resource as C sees it: a context and three functions.
///
/// [`ResourceTable::export`] makes one of a [`Resource`](crate::Resource), and [`ExternalResource`] is a resource that is made of one. The
/// header `include/curium_resource.h` of this crate declares it for C and C++.
///
/// - The functions may be called from any thread, also from several at once, and do not unwind.
/// - A stream is one of the context that the table was made for, no default stream, and lives until the table is released, since what
///   was freed on it may be handed out again.
/// - A function that fails changes nothing; memory that could not be given back is still the caller's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ResourceTable {
    /// Passed to every function.
    pub context: *mut c_void,
    /// Allocates.
    pub allocate: Option<AllocateFunction>,
    /// Takes memory back.
    pub deallocate: Option<DeallocateFunction>,
    /// Ends the resource.
    pub release: Option<unsafe extern "C" fn(context: *mut c_void)>,
}

/// Stores the address of `bytes` bytes, aligned to `alignment`, for use in the order of `stream`.
pub type AllocateFunction = unsafe extern "C" fn(
    context: *mut c_void,
    stream: CUstream,
    bytes: usize,
    alignment: usize,
    address: *mut CUdeviceptr,
) -> CUresult;

/// Takes memory back once the work that is on `stream` by now is done.
pub type DeallocateFunction = unsafe extern "C" fn(
    context: *mut c_void,
    stream: CUstream,
    address: CUdeviceptr,
    bytes: usize,
    alignment: usize,
) -> CUresult;
