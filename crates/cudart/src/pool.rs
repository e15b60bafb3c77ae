//! Memory pools.

use std::ffi::{c_int, c_uint, c_void};

use curium_sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType, CUmemAllocationType,
    CUmemLocation, CUmemPool_attribute, CUmemPoolProps, CUmemPoolPtrExportData, CUmemoryPool,
    CUstream,
};

use crate::memory::{address, pointer};
use crate::state::{Out, enter};
use crate::{cu, forward, forward_without_context, runtime};

runtime! {
    [cudaMallocFromPoolAsync_ptsz(stream)]
    fn cudaMallocFromPoolAsync(memory: Out<*mut c_void>, size: usize, pool: CUmemoryPool, stream: CUstream) {
        enter()?;
        let mut allocation = 0;
        // SAFETY: `allocation` is valid for writes, and the caller of the runtime function
        // guarantees the other arguments.
        unsafe { cu!(cuMemAllocFromPoolAsync(&raw mut allocation, size, pool, stream)) }?;
        memory.write(pointer(allocation))
    }
}

forward! {
    unsafe fn cudaMemPoolCreate(pool: *mut CUmemoryPool, properties: *const CUmemPoolProps)
        = cuMemPoolCreate(pool, properties);
}

forward_without_context! {
    unsafe fn cudaDeviceGetDefaultMemPool(pool: *mut CUmemoryPool, device: c_int)
        = cuDeviceGetDefaultMemPool(pool, device);

    unsafe fn cudaDeviceGetMemPool(pool: *mut CUmemoryPool, device: c_int)
        = cuDeviceGetMemPool(pool, device);

    unsafe fn cudaDeviceSetMemPool(device: c_int, pool: CUmemoryPool)
        = cuDeviceSetMemPool(device, pool);

    unsafe fn cudaMemPoolDestroy(pool: CUmemoryPool) = cuMemPoolDestroy(pool);

    unsafe fn cudaMemPoolGetAttribute(pool: CUmemoryPool, attribute: c_uint, value: *mut c_void)
        = cuMemPoolGetAttribute(pool, CUmemPool_attribute(attribute), value);

    unsafe fn cudaMemPoolSetAttribute(pool: CUmemoryPool, attribute: c_uint, value: *mut c_void)
        = cuMemPoolSetAttribute(pool, CUmemPool_attribute(attribute), value);

    unsafe fn cudaMemPoolTrimTo(pool: CUmemoryPool, bytes: usize) = cuMemPoolTrimTo(pool, bytes);

    unsafe fn cudaMemPoolSetAccess(pool: CUmemoryPool, list: *const CUmemAccessDesc, count: usize)
        = cuMemPoolSetAccess(pool, list, count);

    unsafe fn cudaMemPoolGetAccess(
        flags: *mut CUmemAccess_flags,
        pool: CUmemoryPool,
        location: *mut CUmemLocation,
    ) = cuMemPoolGetAccess(flags, pool, location);

    unsafe fn cudaMemPoolExportPointer(data: *mut CUmemPoolPtrExportData, memory: *mut c_void)
        = cuMemPoolExportPointer(data, address(memory));

    unsafe fn cudaMemPoolExportToShareableHandle(
        handle: *mut c_void,
        pool: CUmemoryPool,
        kind: CUmemAllocationHandleType,
        flags: c_uint,
    ) = cuMemPoolExportToShareableHandle(handle, pool, kind, flags.into());

    unsafe fn cudaMemPoolImportFromShareableHandle(
        pool: *mut CUmemoryPool,
        handle: *mut c_void,
        kind: CUmemAllocationHandleType,
        flags: c_uint,
    ) = cuMemPoolImportFromShareableHandle(pool, handle, kind, flags.into());

    unsafe fn cudaMemPoolImportPointer(
        memory: *mut *mut c_void,
        pool: CUmemoryPool,
        data: *mut CUmemPoolPtrExportData,
    ) = cuMemPoolImportPointer(memory.cast(), pool, data);

    unsafe fn cudaMemGetDefaultMemPool(
        pool: *mut CUmemoryPool,
        location: *mut CUmemLocation,
        kind: CUmemAllocationType,
    ) = cuMemGetDefaultMemPool(pool, location, kind);

    unsafe fn cudaMemGetMemPool(
        pool: *mut CUmemoryPool,
        location: *mut CUmemLocation,
        kind: CUmemAllocationType,
    ) = cuMemGetMemPool(pool, location, kind);

    unsafe fn cudaMemSetMemPool(
        location: *mut CUmemLocation,
        kind: CUmemAllocationType,
        pool: CUmemoryPool,
    ) = cuMemSetMemPool(location, kind, pool);

    unsafe fn cudaMemGetLocationInfo(
        memory: *mut c_void,
        size: usize,
        summary: usize,
        sampling: usize,
        location: *mut CUmemLocation,
    ) = cuMemGetLocationInfo(address(memory), size, summary, sampling, location);
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use curium_sys::CUmemLocationType;

    use super::*;
    use crate::tests::{call, code, simulate};

    #[test]
    fn pool_allocates_and_stores_its_threshold() {
        let _turn = simulate();
        let allocation = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        let mut properties = CUmemPoolProps {
            allocType: allocation,
            ..CUmemPoolProps::default()
        };
        properties.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        let mut pool = CUmemoryPool::default();
        let stream = CUstream::default();
        call!(cudaMemPoolCreate(&raw mut pool, &raw const properties));
        let threshold = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD.0;
        let mut value = 1_u64 << 20;
        let mut attribute = 0_u64;
        call!(cudaMemPoolSetAttribute(
            pool,
            threshold,
            (&raw mut value).cast()
        ));
        call!(cudaMemPoolGetAttribute(
            pool,
            threshold,
            (&raw mut attribute).cast()
        ));
        assert_eq!(attribute, 1 << 20);
        let mut memory: *mut c_void = ptr::null_mut();
        call!(cudaMallocFromPoolAsync(
            (&mut memory).into(),
            256,
            pool,
            stream
        ));
        let used = CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT.0;
        call!(cudaMemPoolGetAttribute(
            pool,
            used,
            (&raw mut attribute).cast()
        ));
        assert!(attribute >= 256, "{attribute}");
        let free = crate::memory::cudaFreeAsync;
        call!(free(memory, stream));
        call!(cudaMemPoolTrimTo(pool, 0));
        call!(cudaMemPoolDestroy(pool));
        assert_eq!(code!(cudaMemPoolCreate(&raw mut pool, ptr::null())), 1);
    }
}
