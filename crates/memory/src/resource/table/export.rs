//! Export of a resource to C.

use std::collections::HashMap;
use std::ffi::c_void;

use curium_driver::extend::contain_callback;
use curium_driver::sys::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUdeviceptr, CUresult, CUstream};
use curium_driver::{Context, DevicePointer, Error, Result, Stream};
use parking_lot::Mutex;

use super::ResourceTable;
use crate::resource::Resource;

/// The target of the context pointer in an exported table.
struct Exported<R> {
    resource: R,
    context: Context,
    /// The streams passed so far, by handle. They outlive the table.
    streams: Mutex<HashMap<usize, Stream>>,
}

impl ResourceTable {
    /// Exports `resource` as a table of C functions for streams of `context`. The table owns the
    /// resource; the C code must call `release` exactly once.
    #[must_use]
    pub fn export<R: Resource + 'static>(resource: R, context: &Context) -> Self {
        let exported = Exported {
            resource,
            context: context.clone(),
            streams: Mutex::default(),
        };
        Self {
            context: Box::into_raw(Box::new(exported)).cast(),
            allocate: Some(allocate::<R>),
            deallocate: Some(deallocate::<R>),
            release: Some(release::<R>),
        }
    }
}

impl<R: Resource> Exported<R> {
    /// Returns the stream with a handle. The same handle always returns the same value.
    fn stream(&self, raw: CUstream) -> Result<Stream> {
        if raw.is_null() || raw == CU_STREAM_LEGACY || raw == CU_STREAM_PER_THREAD {
            return Err(Error::argument(
                "ResourceTable",
                "default streams are not supported",
            ));
        }
        let mut streams = self.streams.lock();
        let stream = streams.entry(raw.addr()).or_insert_with(|| {
            // SAFETY: the caller of the table passes a stream of this context that outlives the
            // table.
            unsafe { Stream::borrow_raw(&self.context, raw, ()) }
        });
        Ok(stream.clone())
    }
}

/// The C function that allocates from the resource.
///
/// # Safety
///
/// As [`ResourceTable`] requires: `context` belongs to a table of an `R` that was not released,
/// `stream` is live, and `address` is valid for writes.
unsafe extern "C" fn allocate<R: Resource>(
    context: *mut c_void,
    stream: CUstream,
    bytes: usize,
    alignment: usize,
    address: *mut CUdeviceptr,
) -> CUresult {
    contain_callback("a memory resource", CUresult::CUDA_ERROR_UNKNOWN, || {
        if address.is_null() {
            return CUresult::CUDA_ERROR_INVALID_VALUE;
        }
        // SAFETY: `context` belongs to a table of an `R` that was not released, as the table
        // requires of its callers.
        let exported = unsafe { &*context.cast::<Exported<R>>() };
        let allocated = exported
            .stream(stream)
            .and_then(|stream| exported.resource.allocate(&stream, bytes, alignment));
        if let Ok(pointer) = &allocated {
            // SAFETY: `address` is valid for writes, as the table requires of its callers.
            unsafe { address.write(pointer.as_raw()) };
        }
        code(allocated.map(drop))
    })
}

/// The C function that frees memory of the resource.
///
/// # Safety
///
/// As [`ResourceTable`] requires: `context` belongs to a table of an `R` that was not released,
/// `stream` is live, and the memory was allocated from the table with this size and alignment and
/// is no longer used.
unsafe extern "C" fn deallocate<R: Resource>(
    context: *mut c_void,
    stream: CUstream,
    address: CUdeviceptr,
    bytes: usize,
    alignment: usize,
) -> CUresult {
    contain_callback("a memory resource", CUresult::CUDA_ERROR_UNKNOWN, || {
        // SAFETY: `context` belongs to a table of an `R` that was not released, as the table
        // requires of its callers.
        let exported = unsafe { &*context.cast::<Exported<R>>() };
        let pointer = DevicePointer::from_raw(address);
        code(exported.stream(stream).and_then(|stream| {
            // SAFETY: the memory came from this resource, and only earlier work on `stream` uses
            // it, as the table requires of its callers.
            unsafe {
                exported
                    .resource
                    .deallocate(&stream, pointer, bytes, alignment)
            }
        }))
    })
}

/// The C function that drops the resource.
///
/// # Safety
///
/// `context` belongs to a table of an `R`, and is not used afterwards.
unsafe extern "C" fn release<R: Resource>(context: *mut c_void) {
    contain_callback("the destructor of a memory resource", (), || {
        // SAFETY: the context came from `Box::into_raw` of this type, and the caller releases it
        // once.
        drop(unsafe { Box::from_raw(context.cast::<Exported<R>>()) });
    });
}

/// Converts a result to a C result code.
fn code(result: Result<()>) -> CUresult {
    match result {
        Ok(()) => CUresult::CUDA_SUCCESS,
        Err(error) if error.is_out_of_memory() => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        Err(Error::Argument(_)) => CUresult::CUDA_ERROR_INVALID_VALUE,
        Err(Error::Missing(_)) => CUresult::CUDA_ERROR_NOT_SUPPORTED,
        Err(error) => error.code().unwrap_or(CUresult::CUDA_ERROR_UNKNOWN),
    }
}
