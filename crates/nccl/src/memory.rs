//! Device memory that NCCL allocates.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use curium_driver::extend::refuse_wait;
use curium_driver::{DevicePointer, Error, Result, Stream};
use curium_memory::Resource;

use crate::error::call;
use crate::library::Nccl;

/// The alignment of all device memory.
const ALIGNMENT: usize = 256;

/// A memory resource that allocates with NCCL. Its memory is suitable for
/// [registration](crate::Communicator::register) and
/// [windows](crate::Communicator::register_window) on every kind of connection.
///
/// Allocations are rounded up to a multiple of 2 MiB where this is the GPU's mapping granularity.
/// Allocating and freeing are slow, and freeing waits for the work on the stream.
///
/// Requires NCCL 2.19. CUDA: `ncclMemAlloc`, `ncclMemFree`, `cuStreamQuery`, `cuStreamSynchronize`.
#[derive(Clone)]
#[doc(alias = "ncclMemAlloc")]
#[doc(alias = "ncclMemFree")]
pub struct NcclMemory(Nccl);

impl Nccl {
    /// Returns the library's memory as a resource:
    /// `DeviceBuffer::zeroed_in(&stream, len, nccl.memory())`.
    #[must_use]
    pub fn memory(&self) -> NcclMemory {
        NcclMemory(self.clone())
    }
}

// SAFETY: NCCL upholds the contract for memory that it allocated on the stream's device, which
// lives until it is freed, after the stream has been synchronized.
unsafe impl Resource for NcclMemory {
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        const OPERATION: &str = "NcclMemory::allocate";
        if bytes == 0 || isize::try_from(bytes).is_err() {
            return Err(Error::argument(
                OPERATION,
                format!("invalid size ({bytes} bytes)"),
            ));
        }
        if !alignment.is_power_of_two() || alignment > ALIGNMENT {
            return Err(Error::argument(
                OPERATION,
                format!("unsupported alignment ({alignment} bytes, at most {ALIGNMENT})"),
            ));
        }
        refuse_wait(OPERATION)?;
        stream.context().entered(|_| {
            let mut raw = ptr::null_mut();
            // SAFETY: `raw` is valid for writes, and the context of the device is current.
            let allocated = unsafe { call!(self.0.api(), ncclMemAlloc(&raw mut raw, bytes)) };
            allocated
                .map_err(|error| converted(OPERATION, &error).about(format!("{bytes} bytes")))?;
            Ok(DevicePointer::from_raw(raw.addr() as u64))
        })
    }

    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        _: usize,
        _: usize,
    ) -> Result<()> {
        // NCCL does not guarantee that freeing waits.
        if !stream.is_finished()? {
            stream.synchronize()?;
        }
        stream.context().entered(|_| {
            let raw = ptr::without_provenance_mut(pointer.as_raw() as usize);
            // SAFETY: the caller guarantees that the memory is live, and that the stream, which has
            // completed, waited for every access.
            let freed = unsafe { call!(self.0.api(), ncclMemFree(raw)) };
            freed.map_err(|error| converted("NcclMemory::deallocate", &error))
        })
    }

    fn detached(&self) -> Option<Arc<dyn Resource>> {
        Some(Arc::new(self.clone()))
    }
}

#[cold]
fn converted(operation: &'static str, error: &crate::Error) -> Error {
    Error::argument(operation, error.to_string())
}

impl fmt::Debug for NcclMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NcclMemory")
    }
}
