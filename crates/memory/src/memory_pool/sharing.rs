//! Pools that several processes share.

use std::ffi::c_void;
use std::fmt;
#[cfg(unix)]
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use curium_driver::sys::{
    CUdeviceptr, CUmemAllocationHandleType, CUmemFabricHandle, CUmemFabricHandle_st, CUmemPoolPtrExportData, CUresult,
};
use curium_driver::{DevicePointer, Driver, Result, Returned, call, release};

use super::MemoryPool;
use crate::virtual_memory::FabricHandle;

curium_driver::shared_handle! {
    /// Names memory of a shared pool to a process that has imported the pool. It is plain bytes, which any channel can carry.
    pub struct PoolPointerHandle of CUmemPoolPtrExportData;
}

/// Memory of a pool of another process. It must be gone before that process frees it.
pub struct PoolMemory {
    address: CUdeviceptr,
    pool: MemoryPool,
}

impl MemoryPool {
    /// A file descriptor of the pool, which another process can [import](MemoryPool::import_fd) once it has received it over a socket.
    ///
    /// CUDA: `cuMemPoolExportToShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the pool was not made with
    /// [`MemoryHandleTypes::POSIX_FILE_DESCRIPTOR`](curium_driver::MemoryHandleTypes).
    #[cfg(unix)]
    #[doc(alias = "cuMemPoolExportToShareableHandle")]
    #[inline]
    pub fn export_fd(&self) -> Result<OwnedFd> {
        let (mut descriptor, kind) = (-1, CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        let place = (&raw mut descriptor).cast::<c_void>();
        // SAFETY: for this kind the driver writes an `int`, which `descriptor` is a place for; the pool is live.
        unsafe { call!(self.driver(), cuMemPoolExportToShareableHandle(place, self.as_raw(), kind, 0)) }?;
        // SAFETY: the driver opened the descriptor for the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// The pool that another process exported as this descriptor, which stays the caller's. Nothing can be allocated from it here, but
    /// memory that the other process allocated can be [opened](MemoryPool::import_pointer).
    ///
    /// CUDA: `cuMemPoolImportFromShareableHandle`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the descriptor is not one of a pool.
    #[cfg(unix)]
    #[doc(alias = "cuMemPoolImportFromShareableHandle")]
    #[inline]
    pub fn import_fd(driver: &Driver, descriptor: BorrowedFd<'_>) -> Result<Self> {
        // The number is passed in place of a pointer.
        let passed = std::ptr::without_provenance_mut(descriptor.as_raw_fd() as usize);
        Self::import(driver, passed, CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    }

    /// A handle by which processes on all machines of the fabric can [import](MemoryPool::import_fabric) the pool.
    ///
    /// CUDA: `cuMemPoolExportToShareableHandle`. Needs a driver for CUDA 12.4.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the pool was not made with [`MemoryHandleTypes::FABRIC`](curium_driver::MemoryHandleTypes).
    #[inline]
    pub fn export_fabric(&self) -> Result<FabricHandle> {
        let mut handle = CUmemFabricHandle::default();
        let (place, kind) = ((&raw mut handle).cast(), CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC);
        // SAFETY: for this kind the driver writes a fabric handle, which `handle` is a place for; the pool is live.
        unsafe { call!(self.driver(), cuMemPoolExportToShareableHandle(place, self.as_raw(), kind, 0)) }?;
        Ok(FabricHandle::from_bytes(handle.data))
    }

    /// The pool that another process of the fabric exported as this handle.
    ///
    /// CUDA: `cuMemPoolImportFromShareableHandle`. Needs a driver for CUDA 12.4.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the handle names no pool; `CUDA_ERROR_NOT_SUPPORTED` or `CUDA_ERROR_NOT_PERMITTED` without a fabric.
    #[inline]
    pub fn import_fabric(driver: &Driver, handle: FabricHandle) -> Result<Self> {
        let mut raw = CUmemFabricHandle_st { data: handle.to_bytes() };
        Self::import(driver, (&raw mut raw).cast(), CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC)
    }

    /// The name under which a process that has imported this pool can open memory that was allocated from it, at its first address. The
    /// pool must have been exported before, as [a descriptor](MemoryPool::export_fd) or [for the fabric](MemoryPool::export_fabric).
    ///
    /// CUDA: `cuMemPoolExportPointer`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if no memory begins there that is of a pool which was exported; pools of the host's memory have no names.
    #[doc(alias = "cuMemPoolExportPointer")]
    #[inline]
    pub fn export_pointer<T>(&self, pointer: DevicePointer<T>) -> Result<PoolPointerHandle> {
        let mut data = CUmemPoolPtrExportData::default();
        // SAFETY: `data` is a valid place for the answer, and the driver looks the address up.
        let result = unsafe { call!(self.driver(), cuMemPoolExportPointer(&raw mut data, pointer.as_raw())) };
        result.map_err(|error| {
            let error = error.about(format!("address {pointer:?}"));
            let hint = "memory has a name once its pool was exported, and that of the host has none";
            error.advised(|call| (call.code == CUresult::CUDA_ERROR_INVALID_VALUE).then(|| hint.into()))
        })?;
        Ok(PoolPointerHandle(data.reserved))
    }

    /// Memory that the process which this pool was imported from has exported.
    ///
    /// CUDA: `cuMemPoolImportPointer`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the handle names no memory of this pool.
    #[doc(alias = "cuMemPoolImportPointer")]
    #[inline]
    pub fn import_pointer(&self, handle: PoolPointerHandle) -> Result<PoolMemory> {
        let (mut data, mut address) = (CUmemPoolPtrExportData { reserved: handle.0 }, 0);
        // SAFETY: `address` and `data` are valid places, and the pool is live.
        unsafe {
            call!(self.driver(), cuMemPoolImportPointer(&raw mut address, self.as_raw(), &raw mut data) creates address)
        }?;
        Ok(PoolMemory { address, pool: self.clone() })
    }

    #[inline]
    fn import(driver: &Driver, handle: *mut c_void, kind: CUmemAllocationHandleType) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is a valid place for the answer, and `handle` is what this kind wants: a descriptor in place of a pointer, or
        // a pointer to a fabric handle.
        unsafe { call!(driver, cuMemPoolImportFromShareableHandle(&raw mut raw, handle, kind, 0) creates raw) }?;
        Ok(Self::from_parts(driver, raw, true))
    }
}

impl PoolMemory {
    /// The address of the first byte in this process. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<u8> {
        DevicePointer::from_raw(self.address)
    }

    /// Ends the use of the memory in this process, which [`Drop`] does as well, and says whether it succeeded. Waits for the device.
    ///
    /// CUDA: `cuMemFree_v2`.
    ///
    /// # Errors
    ///
    /// Gives the memory back if the driver refuses.
    #[inline]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.free().map_err(|error| Returned::new(self, error))
    }

    #[inline]
    fn free(&mut self) -> Result<()> {
        // SAFETY: the memory is live, and is forgotten once it is freed; the driver waits for work that uses it.
        unsafe { call!(self.pool.driver(), cuMemFree_v2(self.address)) }?;
        self.address = 0;
        Ok(())
    }
}

impl fmt::Debug for PoolMemory {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PoolMemory({:?})", self.as_pointer())
    }
}

impl Drop for PoolMemory {
    #[inline]
    fn drop(&mut self) {
        if self.address != 0 {
            release(|| self.free());
        }
    }
}
