//! Physical memory that several processes map.

use std::ffi::c_void;
#[cfg(unix)]
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use curium_driver::sys::{CUmemAllocationHandleType, CUmemFabricHandle, CUmemFabricHandle_st};
use curium_driver::{Driver, Result, call};

use super::{Mapping, PhysicalMemory};

curium_driver::shared_handle! {
    /// Names physical memory to processes on all machines of a fabric. It is plain bytes, which any channel can carry.
    pub struct FabricHandle of CUmemFabricHandle;
}

impl PhysicalMemory {
    /// A file descriptor of the memory, which another process can [import](PhysicalMemory::import_fd) once it has received it over a
    /// socket. It keeps the memory alive until it is closed.
    ///
    /// CUDA: `cuMemExportToShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the memory was not made with
    /// [`MemoryHandleTypes::POSIX_FILE_DESCRIPTOR`](curium_driver::MemoryHandleTypes).
    #[cfg(unix)]
    #[doc(alias = "cuMemExportToShareableHandle")]
    #[inline]
    pub fn export_fd(&self) -> Result<OwnedFd> {
        let (mut descriptor, kind) = (-1, CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        let place = (&raw mut descriptor).cast::<c_void>();
        // SAFETY: for this kind the driver writes an `int`, which `descriptor` is a place for; the handle is live.
        unsafe { call!(self.driver(), cuMemExportToShareableHandle(place, self.as_raw(), kind, 0)) }?;
        // SAFETY: the driver opened the descriptor for the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// The memory of `bytes` bytes that another process exported as this descriptor, which stays the caller's.
    ///
    /// CUDA: `cuMemImportFromShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the descriptor is not one of physical memory. If `bytes` is not its size, mapping fails.
    #[cfg(unix)]
    #[doc(alias = "cuMemImportFromShareableHandle")]
    #[inline]
    pub fn import_fd(driver: &Driver, descriptor: BorrowedFd<'_>, bytes: usize) -> Result<Self> {
        // The number is passed in place of a pointer.
        let passed = std::ptr::without_provenance_mut(descriptor.as_raw_fd() as usize);
        Self::import(driver, passed, CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, bytes)
    }

    /// A handle by which processes on all machines of the fabric can [import](PhysicalMemory::import_fabric) the memory.
    ///
    /// CUDA: `cuMemExportToShareableHandle`. Needs a driver for CUDA 12.4.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the memory was not made with [`MemoryHandleTypes::FABRIC`](curium_driver::MemoryHandleTypes).
    #[inline]
    pub fn export_fabric(&self) -> Result<FabricHandle> {
        let mut handle = CUmemFabricHandle::default();
        let (place, kind) = ((&raw mut handle).cast(), CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC);
        // SAFETY: for this kind the driver writes a fabric handle, which `handle` is a place for; the memory's handle is live.
        unsafe { call!(self.driver(), cuMemExportToShareableHandle(place, self.as_raw(), kind, 0)) }?;
        Ok(FabricHandle(handle.data))
    }

    /// The memory of `bytes` bytes that another process of the fabric exported as this handle.
    ///
    /// CUDA: `cuMemImportFromShareableHandle`. Needs a driver for CUDA 12.4.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the handle names no memory; `CUDA_ERROR_NOT_SUPPORTED` or `CUDA_ERROR_NOT_PERMITTED` without a
    /// fabric.
    #[inline]
    pub fn import_fabric(driver: &Driver, handle: FabricHandle, bytes: usize) -> Result<Self> {
        let mut raw = CUmemFabricHandle_st { data: handle.0 };
        Self::import(driver, (&raw mut raw).cast(), CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC, bytes)
    }

    #[inline]
    fn import(driver: &Driver, handle: *mut c_void, kind: CUmemAllocationHandleType, bytes: usize) -> Result<Self> {
        let mut raw = 0;
        // SAFETY: `raw` is a valid place for the answer, and `handle` is what this kind wants: a descriptor in place of a pointer, or
        // a pointer to a fabric handle.
        let result = unsafe { call!(driver, cuMemImportFromShareableHandle(&raw mut raw, handle, kind) creates raw) };
        result.map_err(|error| error.about(format!("memory of {bytes} bytes")))?;
        Ok(Self::owning(driver, raw, bytes))
    }
}

impl Mapping {
    /// Another hold on the memory that the driver has mapped here, found by its address.
    ///
    /// CUDA: `cuMemRetainAllocationHandle`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "cuMemRetainAllocationHandle")]
    #[inline]
    pub fn retain_memory(&self) -> Result<PhysicalMemory> {
        PhysicalMemory::retained(self.driver(), self.as_pointer(), self.byte_len())
    }
}
