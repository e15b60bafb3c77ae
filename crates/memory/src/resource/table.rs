//! A C interface for resources.

mod export;
mod external;

use std::ffi::c_void;

use curium_driver::sys::{CUdeviceptr, CUresult, CUstream};

pub use self::external::ExternalResource;

/// A resource as a table of C functions with a context pointer.
///
/// [`ResourceTable::export`] exports a [`Resource`](crate::Resource), and [`ExternalResource`]
/// wraps a table as a resource. The header `include/curium_resource.h` of this crate declares it
/// for C and C++.
///
/// - Any thread may call the functions, including concurrently. They do not unwind.
/// - Streams belong to the context that the table was exported for, are not default streams, and
///   outlive the table, because memory freed on them may be reused.
/// - A function that fails has no effect; in particular, memory whose deallocation fails is still
///   allocated.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ResourceTable {
    /// The first argument of every function.
    pub context: *mut c_void,
    /// Allocates memory.
    pub allocate: Option<AllocateFunction>,
    /// Deallocates memory.
    pub deallocate: Option<DeallocateFunction>,
    /// Destroys the resource.
    pub release: Option<unsafe extern "C" fn(context: *mut c_void)>,
}

/// Stores the address of newly allocated memory: `bytes` bytes, aligned to `alignment`, for use in
/// the order of `stream`.
pub type AllocateFunction = unsafe extern "C" fn(
    context: *mut c_void,
    stream: CUstream,
    bytes: usize,
    alignment: usize,
    address: *mut CUdeviceptr,
) -> CUresult;

/// Deallocates memory once the work currently enqueued on `stream` has completed.
pub type DeallocateFunction = unsafe extern "C" fn(
    context: *mut c_void,
    stream: CUstream,
    address: CUdeviceptr,
    bytes: usize,
    alignment: usize,
) -> CUresult;
