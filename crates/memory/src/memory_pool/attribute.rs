//! The attributes of a pool.

use std::ffi::c_void;

use curium_driver::extend::with_relaxed_capture_mode;
use curium_driver::sys::{CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute};
use curium_driver::{MemoryHandleTypes, Result, call};

use super::{MemoryPool, PoolKind};
use crate::MemoryLocation;

impl MemoryPool {
    /// How many bytes the pool keeps, even if they are not in use, when a stream, an event or a context is synchronised.
    ///
    /// CUDA: `cuMemPoolGetAttribute`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD")]
    #[inline]
    pub fn release_threshold(&self) -> Result<u64> {
        self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    }

    /// Sets how many bytes the pool keeps. With 0, the driver's default, memory goes back at every synchronisation.
    ///
    /// CUDA: `cuMemPoolSetAttribute`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn set_release_threshold(&self, bytes: u64) -> Result<()> {
        self.set(CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, bytes)
    }

    /// Whether memory that was freed on one stream is used again on another that has waited for the free.
    ///
    /// CUDA: `cuMemPoolGetAttribute`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES")]
    #[inline]
    pub fn reuses_after_events(&self) -> Result<bool> {
        self.get_flag(CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES)
    }

    /// Sets whether memory that was freed on one stream is used again on another that has waited for the free. It is, unless changed.
    ///
    /// CUDA: `cuMemPoolSetAttribute`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn set_reuses_after_events(&self, reuses: bool) -> Result<()> {
        self.set_flag(CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, reuses)
    }

    /// Whether memory whose free happens to be done is used again on any stream.
    ///
    /// CUDA: `cuMemPoolGetAttribute`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC")]
    #[inline]
    pub fn reuses_opportunistically(&self) -> Result<bool> {
        self.get_flag(CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC)
    }

    /// Sets whether memory whose free happens to be done is used again on any stream. It is, unless changed.
    ///
    /// CUDA: `cuMemPoolSetAttribute`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn set_reuses_opportunistically(&self, reuses: bool) -> Result<()> {
        self.set_flag(CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, reuses)
    }

    /// Whether an allocation may have its stream wait for a free on another stream, to use that memory again.
    ///
    /// CUDA: `cuMemPoolGetAttribute`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES")]
    #[inline]
    pub fn reuses_by_waiting(&self) -> Result<bool> {
        self.get_flag(CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
    }

    /// Sets whether an allocation may have its stream wait for a free on another stream. It may, unless changed.
    ///
    /// CUDA: `cuMemPoolSetAttribute`.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[inline]
    pub fn set_reuses_by_waiting(&self, reuses: bool) -> Result<()> {
        self.set_flag(CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, reuses)
    }

    /// What kind of memory the pool has.
    ///
    /// CUDA: `cuMemPoolGetAttribute`. Needs a driver for CUDA 13.1.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` on older drivers.
    #[doc(alias = "CU_MEMPOOL_ATTR_ALLOCATION_TYPE")]
    #[inline]
    pub fn kind(&self) -> Result<PoolKind> {
        let kind = CUmemAllocationType(self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_ALLOCATION_TYPE)?);
        let is_managed = kind == CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED;
        Ok(if is_managed { PoolKind::Managed } else { PoolKind::Pinned })
    }

    /// The kinds of handle that the pool may be shared by: none, for one of another process.
    ///
    /// CUDA: `cuMemPoolGetAttribute`. Needs a driver for CUDA 13.1.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` on older drivers.
    #[doc(alias = "CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES")]
    #[inline]
    pub fn handle_types(&self) -> Result<MemoryHandleTypes> {
        let types = self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES)?;
        Ok(MemoryHandleTypes::from_bits_retain(types))
    }

    /// Where the memory of the pool is; `None` if it is nowhere in particular.
    ///
    /// CUDA: `cuMemPoolGetAttribute`, twice. Needs a driver for CUDA 13.1.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` on older drivers.
    #[doc(alias = "CU_MEMPOOL_ATTR_LOCATION_TYPE")]
    #[doc(alias = "CU_MEMPOOL_ATTR_LOCATION_ID")]
    #[inline]
    pub fn location(&self) -> Result<Option<MemoryLocation>> {
        let type_ = CUmemLocationType(self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_LOCATION_TYPE)?);
        if type_ == CUmemLocationType::CU_MEM_LOCATION_TYPE_NONE {
            return Ok(None);
        }
        let mut raw = CUmemLocation { type_, ..CUmemLocation::default() };
        raw.__bindgen_anon_1.id = self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_LOCATION_ID)?;
        Ok(Some(MemoryLocation::from_raw(&raw)))
    }

    /// The most bytes that the pool may hold; `None` if the system decides.
    ///
    /// CUDA: `cuMemPoolGetAttribute`. Needs a driver for CUDA 13.1.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` on older drivers.
    #[doc(alias = "CU_MEMPOOL_ATTR_MAX_POOL_SIZE")]
    #[inline]
    pub fn max_bytes(&self) -> Result<Option<u64>> {
        let bytes: u64 = self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_MAX_POOL_SIZE)?;
        Ok((bytes != 0).then_some(bytes))
    }

    /// Whether the decompression engine can use the memory.
    ///
    /// CUDA: `cuMemPoolGetAttribute`. Needs a driver for CUDA 13.1.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` on older drivers.
    #[doc(alias = "CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED")]
    #[inline]
    pub fn is_for_hardware_decompression(&self) -> Result<bool> {
        self.get_flag(CUmemPool_attribute::CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED)
    }

    /// An attribute, of its type. Asking invalidates no capture of another thread.
    #[inline]
    pub(super) fn get<T: Number>(&self, attribute: CUmemPool_attribute) -> Result<T> {
        let mut value = T::default();
        let place = (&raw mut value).cast::<c_void>();
        with_relaxed_capture_mode(self.driver(), || {
            // SAFETY: the pool is live, and `value` is a place for an attribute of this size, which callers name the type of.
            unsafe { call!(self.driver(), cuMemPoolGetAttribute(self.as_raw(), attribute, place)) }
        })
        .map_err(|error| error.about(name(attribute)))?;
        Ok(value)
    }

    /// Sets an attribute, of its type.
    #[inline]
    pub(super) fn set<T: Number>(&self, attribute: CUmemPool_attribute, mut value: T) -> Result<()> {
        let place = (&raw mut value).cast::<c_void>();
        // SAFETY: the pool is live, and `value` is an attribute of this size, which callers name the type of.
        let result = unsafe { call!(self.driver(), cuMemPoolSetAttribute(self.as_raw(), attribute, place)) };
        result.map_err(|error| error.about(name(attribute)))
    }

    #[inline]
    fn get_flag(&self, attribute: CUmemPool_attribute) -> Result<bool> {
        self.get::<i32>(attribute).map(|value| value != 0)
    }

    #[inline]
    fn set_flag(&self, attribute: CUmemPool_attribute, value: bool) -> Result<()> {
        self.set(attribute, i32::from(value))
    }
}

/// A type of attributes. Any bytes are a value of it.
pub(super) trait Number: Copy + Default {}

impl Number for i32 {}
impl Number for u32 {}
impl Number for u64 {}

/// What an attribute is called in errors.
#[inline]
fn name(attribute: CUmemPool_attribute) -> String {
    use CUmemPool_attribute as Attribute;
    let name = match attribute {
        Attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES => "reuse after events",
        Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC => "opportunistic reuse",
        Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => "reuse by waiting",
        Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => "release threshold",
        CUmemPool_attribute(number) => return format!("attribute {number} of a pool"),
    };
    format!("{name} of a pool")
}
