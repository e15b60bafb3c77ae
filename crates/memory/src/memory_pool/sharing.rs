//! Sharing of memory pools between processes.

use std::ffi::c_void;
use std::fmt;
#[cfg(unix)]
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
#[cfg(windows)]
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};

use curium_driver::extend::release;
use curium_driver::sys::{
    CUdeviceptr, CUmemAllocationHandleType, CUmemFabricHandle, CUmemFabricHandle_st,
    CUmemPoolPtrExportData, CUresult,
};
use curium_driver::{DevicePointer, Driver, Result, Returned, call};

use super::MemoryPool;
use crate::virtual_memory::FabricHandle;

curium_driver::shared_handle! {
    /// A handle of memory in an exported pool, for processes that have imported the pool. It is an
    /// array of bytes, which can be sent over any channel.
    pub struct PoolPointerHandle of CUmemPoolPtrExportData;
}

/// Memory of an imported pool. Close it before the exporting process frees the memory.
pub struct PoolMemory {
    address: CUdeviceptr,
    pool: MemoryPool,
}

impl MemoryPool {
    /// Exports the pool as a file descriptor, which another process can
    /// [import](MemoryPool::import_fd) after receiving it over a socket.
    ///
    /// CUDA: `cuMemPoolExportToShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the pool lacks
    /// [`MemoryHandleTypes::POSIX_FILE_DESCRIPTOR`](curium_driver::MemoryHandleTypes).
    #[cfg(unix)]
    #[doc(alias = "cuMemPoolExportToShareableHandle")]
    #[doc(alias = "cudaMemPoolExportToShareableHandle")]
    pub fn export_fd(&self) -> Result<OwnedFd> {
        let mut descriptor = -1;
        let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        let output = (&raw mut descriptor).cast::<c_void>();
        // SAFETY: for this handle type the driver writes an `int`, for which `descriptor` has room;
        // the pool is live.
        unsafe {
            call!(
                self.driver(),
                cuMemPoolExportToShareableHandle(output, self.as_raw(), kind, 0)
            )
        }?;
        // SAFETY: the driver opened the descriptor for the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// Imports a pool that another process exported as this descriptor. The caller keeps the
    /// descriptor. An imported pool cannot allocate, but [opens](MemoryPool::import_pointer) memory
    /// that the other process allocated.
    ///
    /// CUDA: `cuMemPoolImportFromShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the descriptor does not refer to a pool.
    #[cfg(unix)]
    #[doc(alias = "cuMemPoolImportFromShareableHandle")]
    #[doc(alias = "cudaMemPoolImportFromShareableHandle")]
    pub fn import_fd(driver: &Driver, descriptor: BorrowedFd<'_>) -> Result<Self> {
        // The descriptor is passed in place of a pointer.
        let passed = std::ptr::without_provenance_mut(descriptor.as_raw_fd() as usize);
        Self::import(
            driver,
            passed,
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        )
    }

    /// Exports the pool as a Win32 handle, which another process can
    /// [import](MemoryPool::import_win32) after it was duplicated into that process.
    ///
    /// CUDA: `cuMemPoolExportToShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the pool lacks
    /// [`MemoryHandleTypes::WIN32`](curium_driver::MemoryHandleTypes).
    #[cfg(windows)]
    #[doc(alias = "cuMemPoolExportToShareableHandle")]
    #[doc(alias = "cudaMemPoolExportToShareableHandle")]
    pub fn export_win32(&self) -> Result<OwnedHandle> {
        let mut handle = std::ptr::null_mut::<c_void>();
        let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32;
        let output = (&raw mut handle).cast::<c_void>();
        // SAFETY: for this handle type the driver writes a `HANDLE`, which fits into `handle`; the
        // pool is live.
        unsafe {
            call!(
                self.driver(),
                cuMemPoolExportToShareableHandle(output, self.as_raw(), kind, 0)
            )
        }?;
        // SAFETY: the driver opened the handle for the caller.
        Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
    }

    /// Imports a pool that another process exported as this handle. The caller keeps the handle.
    /// The imported pool cannot allocate, but memory that the other process allocated can be
    /// [opened](MemoryPool::import_pointer).
    ///
    /// CUDA: `cuMemPoolImportFromShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the handle does not refer to a pool.
    #[cfg(windows)]
    #[doc(alias = "cuMemPoolImportFromShareableHandle")]
    #[doc(alias = "cudaMemPoolImportFromShareableHandle")]
    pub fn import_win32(driver: &Driver, handle: BorrowedHandle<'_>) -> Result<Self> {
        Self::import(
            driver,
            handle.as_raw_handle(),
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32,
        )
    }

    /// Exports the pool as a fabric handle, which processes on all nodes of the fabric can
    /// [import](MemoryPool::import_fabric).
    ///
    /// CUDA: `cuMemPoolExportToShareableHandle`. Requires a driver for CUDA 12.4.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the pool lacks
    /// [`MemoryHandleTypes::FABRIC`](curium_driver::MemoryHandleTypes).
    pub fn export_fabric(&self) -> Result<FabricHandle> {
        let mut handle = CUmemFabricHandle::default();
        let output = (&raw mut handle).cast();
        let kind = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC;
        // SAFETY: for this handle type the driver writes a fabric handle, which fits into `handle`;
        // the pool is live.
        unsafe {
            call!(
                self.driver(),
                cuMemPoolExportToShareableHandle(output, self.as_raw(), kind, 0)
            )
        }?;
        Ok(FabricHandle::from_bytes(handle.data))
    }

    /// Imports a pool that another process of the fabric exported as this handle.
    ///
    /// CUDA: `cuMemPoolImportFromShareableHandle`. Requires a driver for CUDA 12.4.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for an invalid handle; `CUDA_ERROR_NOT_SUPPORTED` or
    /// `CUDA_ERROR_NOT_PERMITTED` without a fabric.
    pub fn import_fabric(driver: &Driver, handle: FabricHandle) -> Result<Self> {
        let mut raw = CUmemFabricHandle_st {
            data: handle.to_bytes(),
        };
        Self::import(
            driver,
            (&raw mut raw).cast(),
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC,
        )
    }

    /// Exports memory of this pool for processes that have imported the pool. `pointer` is the
    /// start of an allocation. The pool must have been exported before, as
    /// [a descriptor](MemoryPool::export_fd) or [a fabric handle](MemoryPool::export_fabric).
    ///
    /// CUDA: `cuMemPoolExportPointer`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if `pointer` is not the start of an allocation from an exported
    /// pool, or if this is a host pool.
    #[doc(alias = "cuMemPoolExportPointer")]
    #[doc(alias = "cudaMemPoolExportPointer")]
    pub fn export_pointer<T>(&self, pointer: DevicePointer<T>) -> Result<PoolPointerHandle> {
        let mut data = CUmemPoolPtrExportData::default();
        // SAFETY: `data` is a valid pointer, and the driver validates the address.
        let result = unsafe {
            call!(
                self.driver(),
                cuMemPoolExportPointer(&raw mut data, pointer.as_raw())
            )
        };
        result.map_err(|error| {
            let error = error.about(format!("address {pointer:?}"));
            let hint = "only memory of an exported device pool can be exported";
            error.advised(|call| {
                (call.code == CUresult::CUDA_ERROR_INVALID_VALUE).then(|| hint.into())
            })
        })?;
        Ok(PoolPointerHandle(data.reserved))
    }

    /// Opens memory that the exporting process of this pool has exported.
    ///
    /// CUDA: `cuMemPoolImportPointer`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the handle does not belong to this pool.
    #[doc(alias = "cuMemPoolImportPointer")]
    #[doc(alias = "cudaMemPoolImportPointer")]
    pub fn import_pointer(&self, handle: PoolPointerHandle) -> Result<PoolMemory> {
        let mut data = CUmemPoolPtrExportData { reserved: handle.0 };
        let mut address = 0;
        // SAFETY: `address` and `data` are valid pointers, and the pool is live.
        unsafe {
            call!(self.driver(), cuMemPoolImportPointer(&raw mut address, self.as_raw(), &raw mut data) creates address)
        }?;
        Ok(PoolMemory {
            address,
            pool: self.clone(),
        })
    }

    fn import(
        driver: &Driver,
        handle: *mut c_void,
        kind: CUmemAllocationHandleType,
    ) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is a valid pointer, and `handle` has the form of this handle type: a
        // descriptor cast to a pointer, a Win32 handle, or a pointer to a fabric handle.
        unsafe {
            call!(driver, cuMemPoolImportFromShareableHandle(&raw mut raw, handle, kind, 0) creates raw)
        }?;
        Ok(Self::from_parts(driver, raw, true))
    }
}

impl PoolMemory {
    /// Returns the address of the first byte in this process. Accesses through the pointer are not
    /// tracked.
    #[must_use]
    pub fn as_pointer(&self) -> DevicePointer<u8> {
        DevicePointer::from_raw(self.address)
    }

    /// Closes the memory, as [`Drop`] does, and returns any error. Waits for the device.
    ///
    /// CUDA: `cuMemFree_v2`.
    ///
    /// # Errors
    ///
    /// Returns the memory together with the error if the driver fails.
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    fn free(&mut self) -> Result<()> {
        // SAFETY: the memory is live, the driver waits for work that uses it, and it is not used
        // after this call.
        unsafe { call!(self.pool.driver(), cuMemFree_v2(self.address)) }?;
        self.address = 0;
        Ok(())
    }
}

impl fmt::Debug for PoolMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PoolMemory({:?})", self.as_pointer())
    }
}

impl Drop for PoolMemory {
    fn drop(&mut self) {
        if self.address != 0 {
            release(|| self.free());
        }
    }
}
