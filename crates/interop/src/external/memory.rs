//! External memory.

use std::fmt;
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(windows)]
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle};
use std::sync::Arc;

use curium_driver::extend::release;
use curium_driver::sys::{self, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, CUexternalMemoryHandleType};
use curium_driver::sys::{CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUdeviceptr, CUexternalMemory};
use curium_driver::{Context, DevicePointer, Error, Result, Returned, call};

#[cfg(unix)]
use super::descriptor;

/// Memory that another API allocated and exported.
///
/// Clones are cheap and refer to the same memory, which is released with the last clone and the
/// last mapping of it.
#[derive(Clone)]
pub struct ExternalMemory {
    shared: Arc<Shared>,
}

struct Shared {
    context: Context,
    raw: CUexternalMemory,
    bytes: u64,
}

/// A range of external memory, mapped in this process. Wrap it in a
/// [`BorrowedBuffer`](curium_memory::BorrowedBuffer) to use it like a buffer.
pub struct ExternalBuffer {
    address: CUdeviceptr,
    bytes: u64,
    memory: ExternalMemory,
}

/// The handle type of external memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ExternalMemoryKind {
    /// An opaque file descriptor or handle from a driver of the same vendor:
    /// `VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT`, or
    /// `VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_BIT` on Windows.
    Opaque,
    /// A Linux dma-buf. Requires a driver for CUDA 13.0.
    #[cfg(unix)]
    DmaBuf,
    /// A shared handle of a Direct3D 12 heap.
    #[cfg(windows)]
    D3d12Heap,
    /// A shared handle of a committed Direct3D 12 resource. The import is dedicated to it.
    #[cfg(windows)]
    D3d12Resource,
    /// A shared handle of a Direct3D 11 resource. The import is dedicated to it.
    #[cfg(windows)]
    D3d11Resource,
}

// SAFETY: the handle is opaque to the host, and the driver accepts it on any thread.
unsafe impl Send for Shared {}
// SAFETY: the handle is opaque to the host, and the driver accepts it on any thread.
unsafe impl Sync for Shared {}

impl ExternalMemory {
    /// Imports `bytes` bytes of memory from a file descriptor and takes ownership of the
    /// descriptor. `bytes` must be the exported size.
    ///
    /// `is_dedicated` is `true` for a dedicated allocation of a single image or buffer.
    ///
    /// CUDA: `cuImportExternalMemory`.
    ///
    /// # Errors
    ///
    /// An argument error if `bytes` is 0; an error returned by the driver if the descriptor does
    /// not refer to exported memory; `CUDA_ERROR_NOT_SUPPORTED` on systems without external memory,
    /// such as the simulator. On error, the descriptor is closed. The driver may detect a wrong
    /// size, or a semaphore, only when the memory is used.
    #[cfg(unix)]
    #[doc(alias = "cuImportExternalMemory")]
    #[doc(alias = "cudaImportExternalMemory")]
    pub fn import_fd(
        context: &Context,
        descriptor: OwnedFd,
        kind: ExternalMemoryKind,
        bytes: u64,
        is_dedicated: bool,
    ) -> Result<Self> {
        let mut description = describe("ExternalMemory::import_fd", kind, bytes, is_dedicated)?;
        let mut raw = std::ptr::null_mut();
        let imported = context.entered(|driver| {
            descriptor::import_with_duplicate("ExternalMemory::import_fd", descriptor, |duplicate| {
                description.handle.fd = duplicate;
                // SAFETY: both pointers are valid, the context is current, and the descriptor is
                // open.
                unsafe { call!(driver, cuImportExternalMemory(&raw mut raw, &raw const description) creates raw) }
            })
        });
        imported.map_err(|error| error.about(format!("{bytes} bytes")))?;
        Ok(Self {
            shared: Arc::new(Shared {
                context: context.clone(),
                raw,
                bytes,
            }),
        })
    }

    /// Imports `bytes` bytes of memory by a Win32 handle, which the caller keeps. `bytes` must be
    /// the exported size.
    ///
    /// `is_dedicated` marks a dedicated allocation for a single image or buffer.
    ///
    /// CUDA: `cuImportExternalMemory`.
    ///
    /// # Errors
    ///
    /// An argument error if `bytes` is 0; an error of the driver if neither a driver nor Direct3D
    /// created the handle; `CUDA_ERROR_NOT_SUPPORTED` if memory cannot be imported, as on the
    /// simulator.
    #[cfg(windows)]
    #[doc(alias = "cuImportExternalMemory")]
    #[doc(alias = "cudaImportExternalMemory")]
    pub fn import_win32(
        context: &Context,
        handle: BorrowedHandle<'_>,
        kind: ExternalMemoryKind,
        bytes: u64,
        is_dedicated: bool,
    ) -> Result<Self> {
        let mut description = describe("ExternalMemory::import_win32", kind, bytes, is_dedicated)?;
        description.handle.win32.handle = handle.as_raw_handle();
        let mut raw = std::ptr::null_mut();
        let imported = context.entered(|driver| {
            // SAFETY: both pointers are valid, the context is current, and the handle is open
            // during the call.
            unsafe { call!(driver, cuImportExternalMemory(&raw mut raw, &raw const description) creates raw) }
        });
        imported.map_err(|error| error.about(format!("{bytes} bytes")))?;
        Ok(Self {
            shared: Arc::new(Shared {
                context: context.clone(),
                raw,
                bytes,
            }),
        })
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.shared.bytes
    }

    /// Returns the context in which the memory was imported.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    /// Returns the raw handle without giving up ownership.
    #[must_use]
    pub fn as_raw(&self) -> CUexternalMemory {
        self.shared.raw
    }

    /// Maps `bytes` bytes at `offset`.
    ///
    /// CUDA: `cuExternalMemoryGetMappedBuffer`.
    ///
    /// # Errors
    ///
    /// An argument error if the range is out of bounds; any error returned by the driver.
    #[doc(alias = "cuExternalMemoryGetMappedBuffer")]
    #[doc(alias = "cudaExternalMemoryGetMappedBuffer")]
    pub fn map(&self, offset: u64, bytes: u64) -> Result<ExternalBuffer> {
        let total = self.byte_len();
        if bytes == 0 || offset.checked_add(bytes).is_none_or(|end| end > total) {
            let reason = format!("{bytes} bytes at offset {offset} of memory of {total} bytes");
            return Err(Error::argument("ExternalMemory::map", reason));
        }
        let description = CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
            offset,
            size: bytes,
            ..CUDA_EXTERNAL_MEMORY_BUFFER_DESC::default()
        };
        let mut address = 0;
        let raw = self.as_raw();
        self.context().entered(|driver| {
            // SAFETY: both pointers are valid, the context is current, and the memory is live.
            unsafe { call!(driver, cuExternalMemoryGetMappedBuffer(&raw mut address, raw, &raw const description) creates address) }
        })?;
        Ok(ExternalBuffer {
            address,
            bytes,
            memory: self.clone(),
        })
    }

    /// Releases the memory, as [`Drop`] does, and returns any error.
    ///
    /// CUDA: `cuDestroyExternalMemory`.
    ///
    /// # Errors
    ///
    /// Returns the memory together with the error if clones or mappings of it still exist, or the
    /// driver call fails.
    #[doc(alias = "cuDestroyExternalMemory")]
    #[doc(alias = "cudaDestroyExternalMemory")]
    pub fn close(self) -> Result<(), Returned<Self>> {
        let mut shared = Arc::try_unwrap(self.shared).map_err(|shared| {
            Returned::new(
                Self { shared },
                Error::argument("ExternalMemory::close", "the memory is still in use"),
            )
        })?;
        shared.destroy().map_err(|error| {
            Returned::new(
                Self {
                    shared: Arc::new(shared),
                },
                error,
            )
        })
    }
}

impl ExternalBuffer {
    /// Returns the address of the first byte. Accesses through the pointer are not tracked.
    #[must_use]
    pub fn as_pointer(&self) -> DevicePointer<u8> {
        DevicePointer::from_raw(self.address)
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.bytes
    }

    /// Unmaps the range, as [`Drop`] does, and returns any error. Waits for the device.
    ///
    /// CUDA: `cuMemFree_v2`.
    ///
    /// # Errors
    ///
    /// Returns the buffer together with the error if the driver fails.
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    fn free(&mut self) -> Result<()> {
        // SAFETY: the buffer is live, and it is not used after this call.
        unsafe { call!(self.memory.context().driver(), cuMemFree_v2(self.address)) }?;
        self.address = 0;
        Ok(())
    }
}

/// Returns the description of memory for the driver, without its handle.
fn describe(
    operation: &'static str,
    kind: ExternalMemoryKind,
    bytes: u64,
    is_dedicated: bool,
) -> Result<CUDA_EXTERNAL_MEMORY_HANDLE_DESC> {
    if bytes == 0 {
        return Err(Error::argument(operation, "zero length"));
    }
    Ok(CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
        type_: kind.to_raw(),
        size: bytes,
        flags: if is_dedicated || kind.is_dedicated() {
            sys::CUDA_EXTERNAL_MEMORY_DEDICATED
        } else {
            0
        },
        ..CUDA_EXTERNAL_MEMORY_HANDLE_DESC::default()
    })
}

#[cfg(unix)]
impl ExternalMemoryKind {
    const fn to_raw(self) -> CUexternalMemoryHandleType {
        match self {
            Self::Opaque => CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
            Self::DmaBuf => CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD,
        }
    }

    /// Returns `true` if such memory is always dedicated to a single resource.
    const fn is_dedicated(self) -> bool {
        false
    }
}

#[cfg(windows)]
impl ExternalMemoryKind {
    const fn to_raw(self) -> CUexternalMemoryHandleType {
        match self {
            Self::Opaque => CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32,
            Self::D3d12Heap => {
                CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP
            }
            Self::D3d12Resource => {
                CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE
            }
            Self::D3d11Resource => {
                CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE
            }
        }
    }

    /// Returns `true` if such memory is always dedicated to a single resource.
    const fn is_dedicated(self) -> bool {
        matches!(self, Self::D3d12Resource | Self::D3d11Resource)
    }
}

impl Shared {
    fn destroy(&mut self) -> Result<()> {
        if !self.raw.is_null() {
            self.context.entered(|driver| {
                // SAFETY: the memory is live, its context is current, and it is not used after this
                // call.
                unsafe { call!(driver, cuDestroyExternalMemory(self.raw)) }
            })?;
            self.raw = std::ptr::null_mut();
        }
        Ok(())
    }
}

impl fmt::Debug for ExternalMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "ExternalMemory({} bytes, {:?})",
            self.byte_len(),
            self.as_raw()
        )
    }
}

impl fmt::Debug for ExternalBuffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "ExternalBuffer({} bytes at {:?})",
            self.bytes,
            self.as_pointer()
        )
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        release(|| self.destroy());
    }
}

impl Drop for ExternalBuffer {
    fn drop(&mut self) {
        if self.address != 0 {
            release(|| self.free());
        }
    }
}
