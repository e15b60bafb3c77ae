//! The memory of a measurement: Curium's caching resource, and C's counterpart.

use std::ptr;

use anyhow::Result;
use curium::driver::AsRawStream as _;
use curium::memory::{CachingOptions, CachingResource, Resource};
use curium::prelude::{Context, DevicePointer, Stream};
use curium::sys::{CUmemPool_attribute, CUmemoryPool};

use crate::bench::suite::{Implementation, call};

/// The alignment of the driver's allocations.
const ALIGN: usize = 256;

/// The memory of one measurement.
pub(super) struct Source {
    pub(super) cache: CachingResource,
    driver_allocator: DriverAllocator,
}

/// The functions that C calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DriverAllocator {
    /// The driver's pool: `cuMemAllocAsync` and `cuMemFreeAsync`.
    Pool,
    /// Synchronous allocation: `cuMemAlloc` and `cuMemFree`, with the context current.
    Synchronous,
}

/// The driver's pool of a device, through raw calls.
pub(super) struct Pool<'a> {
    context: &'a Context,
    raw: CUmemoryPool,
}

impl Source {
    pub(super) fn new(context: &Context, driver_allocator: DriverAllocator) -> Result<Self> {
        let cache =
            CachingResource::with_options(context, &CachingOptions::new().with_cache(true))?;
        Ok(Self {
            cache,
            driver_allocator,
        })
    }

    #[inline]
    pub(super) fn allocate(
        &self,
        implementation: Implementation,
        stream: &Stream,
        bytes: usize,
    ) -> Result<u64> {
        match (implementation, self.driver_allocator) {
            (Implementation::Curium, _) => Ok(self.cache.allocate(stream, bytes, ALIGN)?.as_raw()),
            (Implementation::C, DriverAllocator::Pool) => allocate_in_pool(stream, bytes),
            (Implementation::C, DriverAllocator::Synchronous) => {
                allocate_synchronously(stream, bytes)
            }
        }
    }

    #[inline]
    pub(super) fn free(
        &self,
        implementation: Implementation,
        stream: &Stream,
        address: u64,
        bytes: usize,
    ) -> Result<()> {
        match (implementation, self.driver_allocator) {
            (Implementation::Curium, _) => {
                let pointer = DevicePointer::from_raw(address);
                // SAFETY: the memory was allocated from this resource with this size and alignment,
                // and is not in use.
                Ok(unsafe { self.cache.deallocate(stream, pointer, bytes, ALIGN) }?)
            }
            (Implementation::C, DriverAllocator::Pool) => free_in_pool(stream, address),
            (Implementation::C, DriverAllocator::Synchronous) => {
                free_synchronously(stream, address)
            }
        }
    }
}

#[inline]
fn allocate_in_pool(stream: &Stream, bytes: usize) -> Result<u64> {
    let mut address = 0;
    // SAFETY: `address` is valid for writes, and the stream is live.
    unsafe {
        call!(
            stream.driver(),
            cuMemAllocAsync(&raw mut address, bytes, stream.as_raw())
        )
    }?;
    Ok(address)
}

#[inline]
fn free_in_pool(stream: &Stream, address: u64) -> Result<()> {
    // SAFETY: the memory is live, and nothing uses it.
    unsafe { call!(stream.driver(), cuMemFreeAsync(address, stream.as_raw())) }
}

#[inline]
fn allocate_synchronously(stream: &Stream, bytes: usize) -> Result<u64> {
    let mut address = 0;
    // SAFETY: `address` is valid for writes.
    unsafe { call!(stream.driver(), cuMemAlloc_v2(&raw mut address, bytes)) }?;
    Ok(address)
}

#[inline]
fn free_synchronously(stream: &Stream, address: u64) -> Result<()> {
    // SAFETY: the memory is live, and nothing uses it.
    unsafe { call!(stream.driver(), cuMemFree_v2(address)) }
}

impl<'a> Pool<'a> {
    /// Returns the current pool of the context's device.
    pub(super) fn current(context: &'a Context) -> Result<Self> {
        let mut raw: CUmemoryPool = ptr::null_mut();
        let device = context.device().as_raw();
        // SAFETY: `raw` is valid for writes.
        unsafe { call!(context.driver(), cuDeviceGetMemPool(&raw mut raw, device)) }?;
        Ok(Self { context, raw })
    }

    /// Sets the release threshold so that the pool keeps its memory, as fast C programs do.
    pub(super) fn keep_warm(&self) -> Result<()> {
        let mut threshold = u64::MAX;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        let value = (&raw mut threshold).cast();
        // SAFETY: the pool is live, and the attribute is a number of 64 bits.
        unsafe {
            call!(
                self.context.driver(),
                cuMemPoolSetAttribute(self.raw, attribute, value)
            )
        }
    }

    /// Trims the pool after earlier measurements.
    pub(super) fn trim(&self) -> Result<()> {
        self.context.synchronize()?;
        // SAFETY: the pool is live.
        unsafe { call!(self.context.driver(), cuMemPoolTrimTo(self.raw, 0)) }
    }

    /// Returns the number of bytes in use.
    pub(super) fn used_bytes(&self) -> Result<u64> {
        self.attribute(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
    }

    /// Returns the number of reserved bytes.
    pub(super) fn reserved_bytes(&self) -> Result<u64> {
        self.attribute(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
    }

    fn attribute(&self, attribute: CUmemPool_attribute) -> Result<u64> {
        let mut value = 0_u64;
        // SAFETY: the pool is live, and these attributes are numbers of 64 bits.
        unsafe {
            call!(
                self.context.driver(),
                cuMemPoolGetAttribute(self.raw, attribute, (&raw mut value).cast())
            )
        }?;
        Ok(value)
    }
}
