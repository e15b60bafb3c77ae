//! A resource implemented by C functions.

use std::collections::HashMap;
use std::fmt;

use curium_driver::extend::release;
use curium_driver::sys::CUresult;
use curium_driver::{DevicePointer, Error, Result, Stream};
use parking_lot::Mutex;

use super::{AllocateFunction, DeallocateFunction, ResourceTable};
use crate::resource::Resource;
use curium_driver::AsRawStream as _;

/// A resource implemented by C functions. See [`ResourceTable`].
pub struct ExternalResource {
    table: ResourceTable,
    allocate: AllocateFunction,
    deallocate: DeallocateFunction,
    /// The streams passed to the table, by identity. They outlive it.
    streams: Mutex<HashMap<u64, Stream>>,
}

// SAFETY: the caller of `from_table` guarantees that any thread may call the functions with the
// context, which no other code uses.
unsafe impl Send for ExternalResource {}
// SAFETY: the caller of `from_table` guarantees that any thread may call the functions with the
// context, also concurrently.
unsafe impl Sync for ExternalResource {}

impl ExternalResource {
    /// Creates a resource from `table`. Dropping it calls `release`.
    ///
    /// # Safety
    ///
    /// - The functions do what [`ResourceTable`] requires and uphold the contract of [`Resource`].
    /// - Any thread may call them, including concurrently.
    /// - No other code uses the table afterwards.
    ///
    /// # Errors
    ///
    /// An argument error if a function is missing.
    pub unsafe fn from_table(table: ResourceTable) -> Result<Self> {
        let (Some(allocate), Some(deallocate)) = (table.allocate, table.deallocate) else {
            return Err(Error::argument(
                "ExternalResource::from_table",
                "a function of the table is null",
            ));
        };
        Ok(Self {
            table,
            allocate,
            deallocate,
            streams: Mutex::default(),
        })
    }

    /// Keeps a stream that is passed to the table alive.
    fn keep(&self, stream: &Stream) {
        self.streams
            .lock()
            .entry(stream.identity())
            .or_insert_with(|| stream.clone());
    }
}

// SAFETY: the caller of `from_table` guarantees that the functions uphold the contract.
unsafe impl Resource for ExternalResource {
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        let mut address = 0;
        self.keep(stream);
        // SAFETY: the caller of `from_table` guarantees the functions; the stream is live, and
        // `address` is a valid pointer.
        let code = unsafe {
            (self.allocate)(
                self.table.context,
                stream.as_raw(),
                bytes,
                alignment,
                &raw mut address,
            )
        };
        match code {
            CUresult::CUDA_SUCCESS => Ok(DevicePointer::from_raw(address)),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(Error::refused_memory(bytes, None, None)),
            code => Err(failed("ExternalResource::allocate", code, bytes)),
        }
    }

    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        let context = self.table.context;
        let address = pointer.as_raw();
        self.keep(stream);
        // SAFETY: the table allocated the memory with this size and alignment, and the caller
        // guarantees that only earlier work on `stream` uses it.
        match unsafe { (self.deallocate)(context, stream.as_raw(), address, bytes, alignment) } {
            CUresult::CUDA_SUCCESS => Ok(()),
            code => Err(failed("ExternalResource::deallocate", code, bytes)),
        }
    }
}

#[cold]
fn failed(operation: &'static str, code: CUresult, bytes: usize) -> Error {
    Error::argument(
        operation,
        format!("the C function failed (code {}, {bytes} bytes)", code.0),
    )
}

impl fmt::Debug for ExternalResource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ExternalResource({:?})", self.table.context)
    }
}

impl Drop for ExternalResource {
    fn drop(&mut self) {
        release(|| {
            if let Some(function) = self.table.release {
                // SAFETY: no other code uses the table, and this is the only release.
                unsafe { function(self.table.context) };
            }
            Ok(())
        });
    }
}
