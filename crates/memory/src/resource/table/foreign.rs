//! A resource that another language implements.

use std::collections::HashMap;
use std::fmt;

use curium_driver::extend::release;
use curium_driver::sys::CUresult;
use curium_driver::{DevicePointer, Error, Result, Stream};
use parking_lot::Mutex;

use super::{AllocateFunction, DeallocateFunction, ResourceTable};
use crate::resource::Resource;

/// A resource that is implemented by C functions. See [`ResourceTable`].
pub struct ForeignResource {
    table: ResourceTable,
    allocate: AllocateFunction,
    deallocate: DeallocateFunction,
    /// The streams that were passed to the table by their identity: they live until it is released.
    streams: Mutex<HashMap<u64, Stream>>,
}

// SAFETY: whoever made the value vouches that the functions may be called from any thread with the context, which nobody else uses.
unsafe impl Send for ForeignResource {}
// SAFETY: as for `Send`, and also from several at once.
unsafe impl Sync for ForeignResource {}

impl ForeignResource {
    /// The resource that `table` describes, which is released when the result is dropped.
    ///
    /// # Safety
    ///
    /// - The functions do what [`ResourceTable`] says, and keep the promises of [`Resource`].
    /// - They may be called from any thread, and from several at once.
    /// - Nobody else uses the table from now on.
    ///
    /// # Errors
    ///
    /// An argument error if a function is missing.
    #[inline]
    pub unsafe fn from_table(table: ResourceTable) -> Result<Self> {
        let (Some(allocate), Some(deallocate)) = (table.allocate, table.deallocate) else {
            return Err(Error::argument("ForeignResource::from_table", "a function of the table is null"));
        };
        Ok(Self { table, allocate, deallocate, streams: Mutex::default() })
    }

    /// Keeps a stream that is passed to the table.
    #[inline]
    fn keep(&self, stream: &Stream) {
        self.streams.lock().entry(stream.identity()).or_insert_with(|| stream.clone());
    }
}

// SAFETY: whoever made the value vouches that the functions keep the promises.
unsafe impl Resource for ForeignResource {
    #[inline]
    fn allocate(&self, stream: &Stream, bytes: usize, alignment: usize) -> Result<DevicePointer<u8>> {
        let mut address = 0;
        self.keep(stream);
        // SAFETY: the functions of the table are sound to call with a live stream and a place for the answer.
        let code = unsafe { (self.allocate)(self.table.context, stream.as_raw(), bytes, alignment, &raw mut address) };
        match code {
            CUresult::CUDA_SUCCESS => Ok(DevicePointer::from_raw(address)),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(Error::refused_memory(bytes, None, None)),
            code => Err(failed("ForeignResource::allocate", code, bytes)),
        }
    }

    #[inline]
    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        let (context, address) = (self.table.context, pointer.as_raw());
        self.keep(stream);
        // SAFETY: the caller's promises are those of the table's function, where the memory came from.
        match unsafe { (self.deallocate)(context, stream.as_raw(), address, bytes, alignment) } {
            CUresult::CUDA_SUCCESS => Ok(()),
            code => Err(failed("ForeignResource::deallocate", code, bytes)),
        }
    }
}

#[cold]
#[inline]
fn failed(operation: &'static str, code: CUresult, bytes: usize) -> Error {
    Error::argument(operation, format!("the resource behind it returned code {} for {bytes} bytes", code.0))
}

impl fmt::Debug for ForeignResource {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ForeignResource({:?})", self.table.context)
    }
}

impl Drop for ForeignResource {
    #[inline]
    fn drop(&mut self) {
        release(|| {
            if let Some(function) = self.table.release {
                // SAFETY: nobody else uses the table, and this is the only release.
                unsafe { function(self.table.context) };
            }
            Ok(())
        });
    }
}
