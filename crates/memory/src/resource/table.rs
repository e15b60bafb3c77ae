//! Resources for other languages, and of other languages.

mod export;
mod foreign;

use std::ffi::c_void;

use curium_driver::sys::{CUdeviceptr, CUresult, CUstream};

pub use self::foreign::ForeignResource;

/// A resource as C sees it: a context and three functions.
///
/// [`ResourceTable::export`] makes one of a [`Resource`](crate::Resource), and [`ForeignResource`] is a resource that is made of one. In C:
///
/// ```c
/// typedef struct curium_resource {
///     /* Passed to every function. */
///     void *context;
///     /* Stores the address of `bytes` bytes, aligned to `alignment`, for use in the order of `stream`. */
///     CUresult (*allocate)(void *context, CUstream stream, size_t bytes, size_t alignment, CUdeviceptr *address);
///     /* Takes memory back once the work that is on `stream` by now is done. The figures are those of the allocation. */
///     CUresult (*deallocate)(void *context, CUstream stream, CUdeviceptr address, size_t bytes, size_t alignment);
///     /* Ends the resource. It is called once, when all memory was given back. May be NULL. */
///     void (*release)(void *context);
/// } curium_resource;
/// ```
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
