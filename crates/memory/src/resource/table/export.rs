//! A resource behind C functions.

use std::collections::HashMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use curium_driver::sys::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUdeviceptr, CUresult, CUstream};
use curium_driver::{Context, DevicePointer, Error, Result, Stream};
use parking_lot::Mutex;

use super::ResourceTable;
use crate::resource::Resource;

/// What the context of an exported table points to.
struct Exported<R> {
    resource: R,
    context: Context,
    /// The streams that were passed so far, by their handles, which are theirs until the table is released.
    streams: Mutex<HashMap<usize, Stream>>,
}

impl ResourceTable {
    /// A table for C over `resource`, for streams of `context`. It owns the resource until it is released, which C must do once: until
    /// then nothing of it ends.
    #[must_use]
    #[inline]
    pub fn export<R: Resource + 'static>(resource: R, context: &Context) -> Self {
        let exported = Exported { resource, context: context.clone(), streams: Mutex::default() };
        Self {
            context: Box::into_raw(Box::new(exported)).cast(),
            allocate: Some(allocate::<R>),
            deallocate: Some(deallocate::<R>),
            release: Some(release::<R>),
        }
    }
}

impl<R: Resource> Exported<R> {
    /// The stream that a handle stands for. It is the same value for the same handle.
    #[inline]
    fn stream(&self, raw: CUstream) -> Result<Stream> {
        if raw.is_null() || raw == CU_STREAM_LEGACY || raw == CU_STREAM_PER_THREAD {
            return Err(Error::argument("ResourceTable", "a default stream is none that memory can be allocated on"));
        }
        let mut streams = self.streams.lock();
        let stream = streams.entry(raw.addr()).or_insert_with(|| {
            // SAFETY: the caller of the table passes a stream of this context that lives until the table is released.
            unsafe { Stream::from_foreign(&self.context, raw, ()) }
        });
        Ok(stream.clone())
    }
}

/// # Safety
///
/// As [`ResourceTable`] says: `context` is that of a table of an `R` that was not released, `stream` is live, and `address` is a place
/// for the answer.
unsafe extern "C" fn allocate<R: Resource>(
    context: *mut c_void,
    stream: CUstream,
    bytes: usize,
    alignment: usize,
    address: *mut CUdeviceptr,
) -> CUresult {
    if address.is_null() {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    // SAFETY: the caller passes the context of a table of an `R`, which was not released.
    let exported = unsafe { &*context.cast::<Exported<R>>() };
    code_of(|| {
        let pointer = exported.resource.allocate(&exported.stream(stream)?, bytes, alignment)?;
        // SAFETY: the caller passes a place for the answer.
        unsafe { address.write(pointer.as_raw()) };
        Ok(())
    })
}

/// # Safety
///
/// As [`ResourceTable`] says: `context` is that of a table of an `R` that was not released, `stream` is live, and the memory came from it
/// with these figures and is not used any more.
unsafe extern "C" fn deallocate<R: Resource>(
    context: *mut c_void,
    stream: CUstream,
    address: CUdeviceptr,
    bytes: usize,
    alignment: usize,
) -> CUresult {
    // SAFETY: the caller passes the context of a table of an `R`, which was not released.
    let exported = unsafe { &*context.cast::<Exported<R>>() };
    code_of(|| {
        let (stream, pointer) = (exported.stream(stream)?, DevicePointer::from_raw(address));
        // SAFETY: the caller's promises are those of the resource, where the memory came from.
        unsafe { exported.resource.deallocate(&stream, pointer, bytes, alignment) }
    })
}

/// # Safety
///
/// `context` is that of a table of an `R`, and nobody uses it from now on.
unsafe extern "C" fn release<R: Resource>(context: *mut c_void) {
    // SAFETY: the context came from `Box::into_raw` of this type, and the caller releases it once.
    let exported = unsafe { Box::from_raw(context.cast::<Exported<R>>()) };
    // The user's resource must not unwind into C; what it says has been printed by the panic hook.
    drop(catch_unwind(AssertUnwindSafe(|| drop(exported))));
}

/// What C is told of a result.
#[inline]
fn code_of(operation: impl FnOnce() -> Result<()>) -> CUresult {
    match catch_unwind(AssertUnwindSafe(operation)) {
        Ok(Ok(())) => CUresult::CUDA_SUCCESS,
        Ok(Err(error)) if error.is_out_of_memory() => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        Ok(Err(Error::Argument(_))) => CUresult::CUDA_ERROR_INVALID_VALUE,
        Ok(Err(Error::Missing(_))) => CUresult::CUDA_ERROR_NOT_SUPPORTED,
        Ok(Err(error)) => error.code().unwrap_or(CUresult::CUDA_ERROR_UNKNOWN),
        Err(_) => CUresult::CUDA_ERROR_UNKNOWN,
    }
}
