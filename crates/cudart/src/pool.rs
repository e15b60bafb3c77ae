//! Memory pools.

use std::ffi::{c_int, c_uint, c_void};

use curium_sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUmemPool_attribute, CUmemPoolProps, CUmemoryPool, CUstream,
};

use crate::memory::pointer;
use crate::state::{enter, put};
use crate::{cu, runtime};

runtime! {
    fn cudaDeviceGetDefaultMemPool(place: *mut CUmemoryPool, device: c_int) {
        cu!(cuDeviceGetDefaultMemPool(place, device))
    }

    fn cudaDeviceGetMemPool(place: *mut CUmemoryPool, device: c_int) {
        cu!(cuDeviceGetMemPool(place, device))
    }

    fn cudaDeviceSetMemPool(device: c_int, pool: CUmemoryPool) {
        cu!(cuDeviceSetMemPool(device, pool))
    }

    fn cudaMemPoolCreate(place: *mut CUmemoryPool, properties: *const CUmemPoolProps) {
        enter()?;
        cu!(cuMemPoolCreate(place, properties))
    }

    fn cudaMemPoolDestroy(pool: CUmemoryPool) {
        cu!(cuMemPoolDestroy(pool))
    }

    fn cudaMemPoolGetAttribute(pool: CUmemoryPool, attribute: c_uint, value: *mut c_void) {
        cu!(cuMemPoolGetAttribute(pool, CUmemPool_attribute(attribute), value))
    }

    fn cudaMemPoolSetAttribute(pool: CUmemoryPool, attribute: c_uint, value: *mut c_void) {
        cu!(cuMemPoolSetAttribute(pool, CUmemPool_attribute(attribute), value))
    }

    fn cudaMemPoolTrimTo(pool: CUmemoryPool, bytes: usize) {
        cu!(cuMemPoolTrimTo(pool, bytes))
    }

    fn cudaMemPoolSetAccess(pool: CUmemoryPool, list: *const CUmemAccessDesc, count: usize) {
        cu!(cuMemPoolSetAccess(pool, list, count))
    }

    fn cudaMemPoolGetAccess(flags: *mut CUmemAccess_flags, pool: CUmemoryPool, location: *mut CUmemLocation) {
        cu!(cuMemPoolGetAccess(flags, pool, location))
    }

    fn cudaMallocFromPoolAsync(place: *mut *mut c_void, size: usize, pool: CUmemoryPool, stream: CUstream) {
        enter()?;
        let mut found = 0;
        cu!(cuMemAllocFromPoolAsync(&raw mut found, size, pool, stream))?;
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        unsafe { put(place, pointer(found)) }
    }
}
