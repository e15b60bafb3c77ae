//! Sharing of physical memory between processes.

use std::ffi::c_void;
#[cfg(unix)]
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
#[cfg(windows)]
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};

use curium_driver::sys::{CUmemAllocationHandleType, CUmemFabricHandle, CUmemFabricHandle_st};
use curium_driver::{Driver, Result, call};

use super::{Mapping, PhysicalMemory};

curium_driver::shared_handle! {
    /// A fabric handle of physical memory, for processes on all nodes of an NVLink fabric: plain
    /// bytes that any channel can carry.
    pub struct FabricHandle of CUmemFabricHandle;
}

impl PhysicalMemory {
    /// Exports the memory as a file descriptor, which another process can
    /// [import](PhysicalMemory::import_fd) after receiving it over a socket. The descriptor keeps
    /// the memory alive.
    ///
    /// CUDA: `cuMemExportToShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the memory lacks
    /// [`MemoryHandleTypes::POSIX_FILE_DESCRIPTOR`](curium_driver::MemoryHandleTypes).
    #[cfg(unix)]
    #[doc(alias = "cuMemExportToShareableHandle")]
    pub fn export_fd(&self) -> Result<OwnedFd> {
        let mut descriptor = -1;
        let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        let output = (&raw mut descriptor).cast::<c_void>();
        // SAFETY: for this handle type the driver writes an `int`, for which `descriptor` has room;
        // the handle is live.
        unsafe {
            call!(
                self.driver(),
                cuMemExportToShareableHandle(output, self.as_raw(), kind, 0)
            )
        }?;
        // SAFETY: the driver opened the descriptor for the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// Imports `bytes` bytes of memory that another process exported as this descriptor. The caller
    /// keeps the descriptor.
    ///
    /// CUDA: `cuMemImportFromShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the descriptor does not refer to physical memory. If `bytes`
    /// is not its size, mapping fails.
    #[cfg(unix)]
    #[doc(alias = "cuMemImportFromShareableHandle")]
    pub fn import_fd(driver: &Driver, descriptor: BorrowedFd<'_>, bytes: usize) -> Result<Self> {
        // The descriptor is passed in place of a pointer.
        let passed = std::ptr::without_provenance_mut(descriptor.as_raw_fd() as usize);
        Self::import(
            driver,
            passed,
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            bytes,
        )
    }

    /// Exports the memory as a Win32 handle, which another process can
    /// [import](PhysicalMemory::import_win32) after it was duplicated into that process. The handle
    /// keeps the memory alive.
    ///
    /// CUDA: `cuMemExportToShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the memory lacks
    /// [`MemoryHandleTypes::WIN32`](curium_driver::MemoryHandleTypes).
    #[cfg(windows)]
    #[doc(alias = "cuMemExportToShareableHandle")]
    pub fn export_win32(&self) -> Result<OwnedHandle> {
        let mut handle = std::ptr::null_mut::<c_void>();
        let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32;
        let output = (&raw mut handle).cast::<c_void>();
        // SAFETY: for this handle type the driver writes a `HANDLE`, which fits into `handle`; the
        // memory's handle is live.
        unsafe {
            call!(
                self.driver(),
                cuMemExportToShareableHandle(output, self.as_raw(), kind, 0)
            )
        }?;
        // SAFETY: the driver opened the handle for the caller.
        Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
    }

    /// Imports `bytes` bytes of memory that another process exported as this handle. The caller
    /// keeps the handle.
    ///
    /// CUDA: `cuMemImportFromShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the handle does not refer to physical memory. Mapping fails if
    /// `bytes` is not its size.
    #[cfg(windows)]
    #[doc(alias = "cuMemImportFromShareableHandle")]
    pub fn import_win32(driver: &Driver, handle: BorrowedHandle<'_>, bytes: usize) -> Result<Self> {
        Self::import(
            driver,
            handle.as_raw_handle(),
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32,
            bytes,
        )
    }

    /// Exports the memory as a fabric handle, which processes on all nodes of the fabric can
    /// [import](PhysicalMemory::import_fabric).
    ///
    /// CUDA: `cuMemExportToShareableHandle`. Requires a driver for CUDA 12.4.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the memory lacks
    /// [`MemoryHandleTypes::FABRIC`](curium_driver::MemoryHandleTypes).
    pub fn export_fabric(&self) -> Result<FabricHandle> {
        let mut handle = CUmemFabricHandle::default();
        let output = (&raw mut handle).cast();
        let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC;
        // SAFETY: for this handle type the driver writes a fabric handle, which fits into `handle`;
        // the memory's handle is live.
        unsafe {
            call!(
                self.driver(),
                cuMemExportToShareableHandle(output, self.as_raw(), kind, 0)
            )
        }?;
        Ok(FabricHandle(handle.data))
    }

    /// Imports `bytes` bytes of memory that another process of the fabric exported as this handle.
    ///
    /// CUDA: `cuMemImportFromShareableHandle`. Requires a driver for CUDA 12.4.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an invalid handle; `CUDA_ERROR_NOT_SUPPORTED` or
    /// `CUDA_ERROR_NOT_PERMITTED` without a fabric.
    pub fn import_fabric(driver: &Driver, handle: FabricHandle, bytes: usize) -> Result<Self> {
        let mut raw = CUmemFabricHandle_st { data: handle.0 };
        Self::import(
            driver,
            (&raw mut raw).cast(),
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC,
            bytes,
        )
    }

    fn import(
        driver: &Driver,
        handle: *mut c_void,
        kind: CUmemAllocationHandleType,
        bytes: usize,
    ) -> Result<Self> {
        let mut raw = 0;
        // SAFETY: `raw` is a valid pointer, and `handle` has the form of this handle type: a
        // descriptor cast to a pointer, a Win32 handle, or a pointer to a fabric handle.
        let result = unsafe {
            call!(driver, cuMemImportFromShareableHandle(&raw mut raw, handle, kind) creates raw)
        };
        result.map_err(|error| error.about(format!("memory of {bytes} bytes")))?;
        Ok(Self::owning(driver, raw, bytes))
    }
}

impl Mapping {
    /// Returns another reference to the mapped memory, looked up by its address.
    ///
    /// CUDA: `cuMemRetainAllocationHandle`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuMemRetainAllocationHandle")]
    pub fn retain_memory(&self) -> Result<PhysicalMemory> {
        PhysicalMemory::retained(self.driver(), self.as_pointer(), self.byte_len())
    }
}
