//! Memory pools.

use std::ffi::{c_int, c_uint, c_void};

use curium_sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUmemPool_attribute, CUmemPoolProps,
    CUmemoryPool, CUstream,
};

use crate::memory::pointer;
use crate::state::{enter, put};
use crate::{cu, runtime};

runtime! {
    fn cudaDeviceGetDefaultMemPool(place: *mut CUmemoryPool, device: c_int) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuDeviceGetDefaultMemPool(place, device)) }
    }

    fn cudaDeviceGetMemPool(place: *mut CUmemoryPool, device: c_int) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuDeviceGetMemPool(place, device)) }
    }

    fn cudaDeviceSetMemPool(device: c_int, pool: CUmemoryPool) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuDeviceSetMemPool(device, pool)) }
    }

    fn cudaMemPoolCreate(place: *mut CUmemoryPool, properties: *const CUmemPoolProps) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemPoolCreate(place, properties)) }
    }

    fn cudaMemPoolDestroy(pool: CUmemoryPool) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemPoolDestroy(pool)) }
    }

    fn cudaMemPoolGetAttribute(pool: CUmemoryPool, attribute: c_uint, value: *mut c_void) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemPoolGetAttribute(pool, CUmemPool_attribute(attribute), value)) }
    }

    fn cudaMemPoolSetAttribute(pool: CUmemoryPool, attribute: c_uint, value: *mut c_void) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemPoolSetAttribute(pool, CUmemPool_attribute(attribute), value)) }
    }

    fn cudaMemPoolTrimTo(pool: CUmemoryPool, bytes: usize) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemPoolTrimTo(pool, bytes)) }
    }

    fn cudaMemPoolSetAccess(pool: CUmemoryPool, list: *const CUmemAccessDesc, count: usize) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemPoolSetAccess(pool, list, count)) }
    }

    fn cudaMemPoolGetAccess(flags: *mut CUmemAccess_flags, pool: CUmemoryPool, location: *mut CUmemLocation) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuMemPoolGetAccess(flags, pool, location)) }
    }

    fn cudaMallocFromPoolAsync(place: *mut *mut c_void, size: usize, pool: CUmemoryPool, stream: CUstream) {
        enter()?;
        let mut found = 0;
        // SAFETY: `found` is valid for writes, and the caller of the runtime function guarantees the other arguments.
        unsafe { cu!(cuMemAllocFromPoolAsync(&raw mut found, size, pool, stream)) }?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, pointer(found)) }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use curium_sys::{CUmemAllocationType, CUmemLocationType};

    use super::*;
    use crate::tests::{call, code, simulate};

    #[test]
    fn pool_allocates_keeps_its_threshold_and_is_destroyed() {
        let _turn = simulate();
        let allocation = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        let mut properties = CUmemPoolProps {
            allocType: allocation,
            ..CUmemPoolProps::default()
        };
        properties.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        let (mut pool, stream) = (CUmemoryPool::default(), CUstream::default());
        call!(cudaMemPoolCreate(&raw mut pool, &raw const properties));
        let threshold = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD.0;
        let (mut value, mut found) = (1_u64 << 20, 0_u64);
        call!(cudaMemPoolSetAttribute(
            pool,
            threshold,
            (&raw mut value).cast()
        ));
        call!(cudaMemPoolGetAttribute(
            pool,
            threshold,
            (&raw mut found).cast()
        ));
        assert_eq!(found, 1 << 20);
        let mut memory = ptr::null_mut();
        call!(cudaMallocFromPoolAsync(&raw mut memory, 256, pool, stream));
        let used = CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT.0;
        call!(cudaMemPoolGetAttribute(pool, used, (&raw mut found).cast()));
        assert!(found >= 256, "{found}");
        let free = crate::memory::cudaFreeAsync;
        call!(free(memory, stream));
        call!(cudaMemPoolTrimTo(pool, 0));
        call!(cudaMemPoolDestroy(pool));
        assert_eq!(code!(cudaMemPoolCreate(&raw mut pool, ptr::null())), 1);
    }
}
