//! Memory that another interface has allocated.

use std::fmt;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::sync::Arc;

#[cfg(unix)]
use curium_driver::sys::{self, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, CUexternalMemoryHandleType};
use curium_driver::sys::{CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUdeviceptr, CUexternalMemory};
use curium_driver::{Context, DevicePointer, Error, Result, Returned, call, release};

#[cfg(unix)]
use super::descriptor;

/// Memory that another interface has allocated and exported.
///
/// Cloning is cheap. It is let go of when neither a clone of it nor a buffer in it exists.
#[derive(Clone)]
pub struct ExternalMemory {
    shared: Arc<Shared>,
}

struct Shared {
    context: Context,
    raw: CUexternalMemory,
    bytes: u64,
}

/// Bytes of external memory at an address of this process. A [`ForeignBuffer`](crate::ForeignBuffer) of it is used like a buffer.
pub struct ExternalBuffer {
    address: CUdeviceptr,
    bytes: u64,
    memory: ExternalMemory,
}

/// What kind of descriptor memory was exported as.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ExternalMemoryKind {
    /// One that only drivers of this vendor understand: `VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT`.
    Opaque,
    /// One of the system's buffers that devices share. Needs a driver for CUDA 13.0.
    DmaBuf,
}

// SAFETY: the pointer is a name that only the driver looks behind, from any thread.
unsafe impl Send for Shared {}
// SAFETY: as for `Send`.
unsafe impl Sync for Shared {}

impl ExternalMemory {
    /// Imports `bytes` bytes of memory, as many as were exported, by a descriptor. The driver takes it over.
    ///
    /// Memory that was allocated for one image or buffer alone `is_dedicated`.
    ///
    /// CUDA: `cuImportExternalMemory`.
    ///
    /// # Errors
    ///
    /// An argument error if `bytes` is 0; an error of the driver if the descriptor is not one of its own;
    /// `CUDA_ERROR_NOT_SUPPORTED` where memory cannot be imported, as on the simulator. The descriptor is closed then. A semaphore, or
    /// memory of another size, may pass for memory until it is used.
    #[cfg(unix)]
    #[doc(alias = "cuImportExternalMemory")]
    #[inline]
    pub fn import_fd(
        context: &Context,
        descriptor: OwnedFd,
        kind: ExternalMemoryKind,
        bytes: u64,
        is_dedicated: bool,
    ) -> Result<Self> {
        if bytes == 0 {
            return Err(Error::argument("ExternalMemory::import_fd", "zero length"));
        }
        let mut description = CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
            type_: kind.to_raw(),
            size: bytes,
            flags: if is_dedicated { sys::CUDA_EXTERNAL_MEMORY_DEDICATED } else { 0 },
            ..CUDA_EXTERNAL_MEMORY_HANDLE_DESC::default()
        };
        let mut raw = std::ptr::null_mut();
        let imported = context.entered(|driver| {
            descriptor::give("ExternalMemory::import_fd", descriptor, |given| {
                description.handle.fd = given;
                // SAFETY: both places are valid, the context is current, and the descriptor is open.
                unsafe { call!(driver, cuImportExternalMemory(&raw mut raw, &raw const description) creates raw) }
            })
        });
        imported.map_err(|error| error.about(format!("{bytes} bytes")))?;
        Ok(Self { shared: Arc::new(Shared { context: context.clone(), raw, bytes }) })
    }

    /// The size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> u64 {
        self.shared.bytes
    }

    /// The context that the memory was imported in.
    #[must_use]
    #[inline]
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// The driver's handle, which stays this value's.
    #[must_use]
    #[inline]
    pub fn as_raw(&self) -> CUexternalMemory {
        self.shared.raw
    }

    /// Gives `bytes` bytes from `offset` on an address.
    ///
    /// CUDA: `cuExternalMemoryGetMappedBuffer`.
    ///
    /// # Errors
    ///
    /// An argument error if there are no such bytes; whatever the driver returns.
    #[doc(alias = "cuExternalMemoryGetMappedBuffer")]
    #[inline]
    pub fn map(&self, offset: u64, bytes: u64) -> Result<ExternalBuffer> {
        let total = self.byte_len();
        if bytes == 0 || offset.checked_add(bytes).is_none_or(|end| end > total) {
            let reason = format!("{bytes} bytes at offset {offset} of memory of {total} bytes");
            return Err(Error::argument("ExternalMemory::map", reason));
        }
        let description =
            CUDA_EXTERNAL_MEMORY_BUFFER_DESC { offset, size: bytes, ..CUDA_EXTERNAL_MEMORY_BUFFER_DESC::default() };
        let (mut address, raw) = (0, self.as_raw());
        self.context().entered(|driver| {
            // SAFETY: both places are valid, the context is current, and the memory is live.
            unsafe { call!(driver, cuExternalMemoryGetMappedBuffer(&raw mut address, raw, &raw const description) creates address) }
        })?;
        Ok(ExternalBuffer { address, bytes, memory: self.clone() })
    }

    /// Lets go of the memory, which [`Drop`] does as well, and says whether it succeeded.
    ///
    /// CUDA: `cuDestroyExternalMemory`.
    ///
    /// # Errors
    ///
    /// Gives the memory back if clones of it or buffers in it exist, or if the driver refuses.
    #[doc(alias = "cuDestroyExternalMemory")]
    #[inline]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut shared = Arc::try_unwrap(self.shared).map_err(|shared| {
            Returned::new(Self { shared }, Error::argument("ExternalMemory::close", "the memory is still in use"))
        })?;
        shared.destroy().map_err(|error| Returned::new(Self { shared: Arc::new(shared) }, error))
    }
}

impl ExternalBuffer {
    /// The address of the first byte. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<u8> {
        DevicePointer::from_raw(self.address)
    }

    /// The size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> u64 {
        self.bytes
    }

    /// Gives the address back, which [`Drop`] does as well, and says whether it succeeded. Waits for the device.
    ///
    /// CUDA: `cuMemFree_v2`.
    ///
    /// # Errors
    ///
    /// Gives the buffer back if the driver refuses.
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    #[inline]
    fn free(&mut self) -> Result<()> {
        // SAFETY: the buffer is live, and is forgotten once it is freed.
        unsafe { call!(self.memory.context().driver(), cuMemFree_v2(self.address)) }?;
        self.address = 0;
        Ok(())
    }
}

#[cfg(unix)]
impl ExternalMemoryKind {
    const fn to_raw(self) -> CUexternalMemoryHandleType {
        match self {
            Self::Opaque => CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
            Self::DmaBuf => CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD,
        }
    }
}

impl Shared {
    #[inline]
    fn destroy(&mut self) -> Result<()> {
        if !self.raw.is_null() {
            self.context.entered(|driver| {
                // SAFETY: the memory is live, its context is current, and it is forgotten once it is destroyed.
                unsafe { call!(driver, cuDestroyExternalMemory(self.raw)) }
            })?;
            self.raw = std::ptr::null_mut();
        }
        Ok(())
    }
}

impl fmt::Debug for ExternalMemory {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ExternalMemory({} bytes, {:?})", self.byte_len(), self.as_raw())
    }
}

impl fmt::Debug for ExternalBuffer {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ExternalBuffer({} bytes at {:?})", self.bytes, self.as_pointer())
    }
}

impl Drop for Shared {
    #[inline]
    fn drop(&mut self) {
        release(|| self.destroy());
    }
}

impl Drop for ExternalBuffer {
    #[inline]
    fn drop(&mut self) {
        if self.address != 0 {
            release(|| self.free());
        }
    }
}
