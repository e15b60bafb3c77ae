//! The memory of a measurement: Curium's caching resource, and C's counterpart.

use std::ptr;

use curium_driver::sys::{CUmemPool_attribute, CUmemoryPool};
use curium_driver::{Context, DevicePointer, Function, Stream};
use curium_memory::{CachingOptions, CachingResource, Resource};

use crate::error::checked;
use crate::{Error, Result, Way};

/// The alignment of the driver's allocations.
const ALIGN: usize = 256;

/// The memory of one measurement.
pub(super) struct Source {
    pub(super) cache: CachingResource,
    twin: Twin,
}

/// The functions that C calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Twin {
    /// The driver's pool: `cuMemAllocAsync` and `cuMemFreeAsync`.
    Pool,
    /// Synchronous allocation: `cuMemAlloc` and `cuMemFree`, with the context current.
    Plain,
}

/// The driver's pool of a device, through raw calls.
pub(super) struct Pool<'a> {
    context: &'a Context,
    raw: CUmemoryPool,
}

impl Source {
    pub(super) fn new(context: &Context, twin: Twin) -> Result<Self> {
        let cache =
            CachingResource::with_options(context, &CachingOptions::new().with_cache(true))?;
        Ok(Self { cache, twin })
    }

    #[inline]
    pub(super) fn allocate(&self, way: Way, stream: &Stream, bytes: usize) -> Result<u64> {
        match (way, self.twin) {
            (Way::Curium, _) => Ok(self.cache.allocate(stream, bytes, ALIGN)?.as_raw()),
            (Way::C, Twin::Pool) => allocate_in_pool(stream, bytes),
            (Way::C, Twin::Plain) => allocate_plain(stream, bytes),
        }
    }

    #[inline]
    pub(super) fn free(&self, way: Way, stream: &Stream, address: u64, bytes: usize) -> Result<()> {
        match (way, self.twin) {
            (Way::Curium, _) => {
                let pointer = DevicePointer::from_raw(address);
                // SAFETY: the memory was allocated from this resource with this size and alignment, and is not in use.
                Ok(unsafe { self.cache.deallocate(stream, pointer, bytes, ALIGN) }?)
            }
            (Way::C, Twin::Pool) => free_in_pool(stream, address),
            (Way::C, Twin::Plain) => free_plain(stream, address),
        }
    }
}

#[inline]
fn allocate_in_pool(stream: &Stream, bytes: usize) -> Result<u64> {
    let function = Function::cuMemAllocAsync;
    let allocate = stream
        .driver()
        .api()
        .cuMemAllocAsync
        .ok_or(Error::Missing(function))?;
    let mut address = 0;
    // SAFETY: `address` is valid for writes, and the stream is live.
    checked(function, unsafe {
        allocate(&raw mut address, bytes, stream.as_raw())
    })?;
    Ok(address)
}

#[inline]
fn free_in_pool(stream: &Stream, address: u64) -> Result<()> {
    let function = Function::cuMemFreeAsync;
    let free = stream
        .driver()
        .api()
        .cuMemFreeAsync
        .ok_or(Error::Missing(function))?;
    // SAFETY: the memory is live, and nothing uses it.
    checked(function, unsafe { free(address, stream.as_raw()) })
}

#[inline]
fn allocate_plain(stream: &Stream, bytes: usize) -> Result<u64> {
    let function = Function::cuMemAlloc_v2;
    let allocate = stream
        .driver()
        .api()
        .cuMemAlloc_v2
        .ok_or(Error::Missing(function))?;
    let mut address = 0;
    // SAFETY: `address` is valid for writes.
    checked(function, unsafe { allocate(&raw mut address, bytes) })?;
    Ok(address)
}

#[inline]
fn free_plain(stream: &Stream, address: u64) -> Result<()> {
    let function = Function::cuMemFree_v2;
    let free = stream
        .driver()
        .api()
        .cuMemFree_v2
        .ok_or(Error::Missing(function))?;
    // SAFETY: the memory is live, and nothing uses it.
    checked(function, unsafe { free(address) })
}

impl<'a> Pool<'a> {
    /// Returns the current pool of the context's device.
    pub(super) fn current(context: &'a Context) -> Result<Self> {
        let mut raw: CUmemoryPool = ptr::null_mut();
        let function = Function::cuDeviceGetMemPool;
        let get = context
            .driver()
            .api()
            .cuDeviceGetMemPool
            .ok_or(Error::Missing(function))?;
        // SAFETY: `raw` is valid for writes.
        checked(function, unsafe {
            get(&raw mut raw, context.device().as_raw())
        })?;
        Ok(Self { context, raw })
    }

    /// Sets the release threshold so that the pool keeps its memory, as fast C programs do.
    pub(super) fn keep_warm(&self) -> Result<()> {
        let mut threshold = u64::MAX;
        let function = Function::cuMemPoolSetAttribute;
        let set = self
            .context
            .driver()
            .api()
            .cuMemPoolSetAttribute
            .ok_or(Error::Missing(function))?;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is live, and the attribute is a number of 64 bits.
        checked(function, unsafe {
            set(self.raw, attribute, (&raw mut threshold).cast())
        })
    }

    /// Trims the pool after earlier measurements.
    pub(super) fn trim(&self) -> Result<()> {
        self.context.synchronize()?;
        let function = Function::cuMemPoolTrimTo;
        let trim = self
            .context
            .driver()
            .api()
            .cuMemPoolTrimTo
            .ok_or(Error::Missing(function))?;
        // SAFETY: the pool is live.
        checked(function, unsafe { trim(self.raw, 0) })
    }

    /// Returns the used and the reserved bytes of the pool.
    pub(super) fn usage(&self) -> Result<(u64, u64)> {
        let used = self.attribute(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
        Ok((
            used,
            self.attribute(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
        ))
    }

    fn attribute(&self, attribute: CUmemPool_attribute) -> Result<u64> {
        let mut value = 0_u64;
        let function = Function::cuMemPoolGetAttribute;
        let get = self
            .context
            .driver()
            .api()
            .cuMemPoolGetAttribute
            .ok_or(Error::Missing(function))?;
        // SAFETY: the pool is live, and these attributes are numbers of 64 bits.
        checked(function, unsafe {
            get(self.raw, attribute, (&raw mut value).cast())
        })?;
        Ok(value)
    }
}
