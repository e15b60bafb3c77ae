//! Pool attributes.

use std::ffi::c_void;

use curium_driver::extend::with_relaxed_capture_mode;
use curium_driver::sys::{
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute,
};
use curium_driver::{MemoryHandleTypes, Result, call};

use super::{MemoryPool, PoolKind};
use crate::MemoryLocation;

impl MemoryPool {
    /// Returns the release threshold in bytes: the amount of memory that the pool keeps when a
    /// stream, event or context is synchronized.
    ///
    /// CUDA: `cuMemPoolGetAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD")]
    pub fn release_threshold(&self) -> Result<u64> {
        self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    }

    /// Sets the release threshold in bytes. With 0, the driver's default, every synchronization
    /// releases all unused memory.
    ///
    /// CUDA: `cuMemPoolSetAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn set_release_threshold(&self, bytes: u64) -> Result<()> {
        self.set(
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            bytes,
        )
    }

    /// Returns `true` if memory freed on one stream can be reused on another stream that has waited
    /// for the free.
    ///
    /// CUDA: `cuMemPoolGetAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES")]
    pub fn reuse_follow_event_dependencies(&self) -> Result<bool> {
        self.get_flag(CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES)
    }

    /// Enables or disables the reuse of memory freed on one stream by another stream that has
    /// waited for the free. Enabled by default.
    ///
    /// CUDA: `cuMemPoolSetAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn set_reuse_follow_event_dependencies(&self, reuses: bool) -> Result<()> {
        self.set_flag(
            CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
            reuses,
        )
    }

    /// Returns `true` if memory whose free has completed can be reused on any stream.
    ///
    /// CUDA: `cuMemPoolGetAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC")]
    pub fn reuse_allow_opportunistic(&self) -> Result<bool> {
        self.get_flag(CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC)
    }

    /// Enables or disables the reuse, on any stream, of memory whose free has completed. Enabled by
    /// default.
    ///
    /// CUDA: `cuMemPoolSetAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn set_reuse_allow_opportunistic(&self, reuses: bool) -> Result<()> {
        self.set_flag(
            CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
            reuses,
        )
    }

    /// Returns `true` if an allocation may make its stream wait for a free on another stream to
    /// reuse the memory.
    ///
    /// CUDA: `cuMemPoolGetAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES")]
    pub fn reuse_allow_internal_dependencies(&self) -> Result<bool> {
        self.get_flag(CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
    }

    /// Enables or disables allocations that make their stream wait for a free on another stream, to
    /// reuse the memory. Enabled by default.
    ///
    /// CUDA: `cuMemPoolSetAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    pub fn set_reuse_allow_internal_dependencies(&self, reuses: bool) -> Result<()> {
        self.set_flag(
            CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
            reuses,
        )
    }

    /// Returns the kind of memory of the pool.
    ///
    /// CUDA: `cuMemPoolGetAttribute`. Requires a driver for CUDA 13.1.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` on older drivers.
    #[doc(alias = "CU_MEMPOOL_ATTR_ALLOCATION_TYPE")]
    pub fn kind(&self) -> Result<PoolKind> {
        let kind =
            CUmemAllocationType(self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_ALLOCATION_TYPE)?);
        let is_managed = kind == CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED;
        Ok(if is_managed {
            PoolKind::Managed
        } else {
            PoolKind::Pinned
        })
    }

    /// Returns the handle types that the pool can be exported as; none for an imported pool.
    ///
    /// CUDA: `cuMemPoolGetAttribute`. Requires a driver for CUDA 13.1.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` on older drivers.
    #[doc(alias = "CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES")]
    pub fn handle_types(&self) -> Result<MemoryHandleTypes> {
        let types = self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES)?;
        Ok(MemoryHandleTypes::from_bits_retain(types))
    }

    /// Returns the location of the pool's memory; `None` if it has no specific location.
    ///
    /// CUDA: `cuMemPoolGetAttribute`, twice. Requires a driver for CUDA 13.1.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` on older drivers.
    #[doc(alias = "CU_MEMPOOL_ATTR_LOCATION_TYPE")]
    #[doc(alias = "CU_MEMPOOL_ATTR_LOCATION_ID")]
    pub fn location(&self) -> Result<Option<MemoryLocation>> {
        let type_ =
            CUmemLocationType(self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_LOCATION_TYPE)?);
        if type_ == CUmemLocationType::CU_MEM_LOCATION_TYPE_NONE {
            return Ok(None);
        }
        let mut raw = CUmemLocation {
            type_,
            ..CUmemLocation::default()
        };
        raw.__bindgen_anon_1.id = self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_LOCATION_ID)?;
        Ok(Some(MemoryLocation::from_raw(&raw)))
    }

    /// Returns the maximum size of the pool in bytes; `None` for the system default.
    ///
    /// CUDA: `cuMemPoolGetAttribute`. Requires a driver for CUDA 13.1.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` on older drivers.
    #[doc(alias = "CU_MEMPOOL_ATTR_MAX_POOL_SIZE")]
    pub fn max_bytes(&self) -> Result<Option<u64>> {
        let bytes: u64 = self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_MAX_POOL_SIZE)?;
        Ok((bytes != 0).then_some(bytes))
    }

    /// Returns `true` if the decompression engine can use the memory.
    ///
    /// CUDA: `cuMemPoolGetAttribute`. Requires a driver for CUDA 13.1.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` on older drivers.
    #[doc(alias = "CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED")]
    pub fn is_for_hardware_decompression(&self) -> Result<bool> {
        self.get_flag(CUmemPool_attribute::CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED)
    }

    /// Queries an attribute. Does not invalidate captures on other threads.
    pub(super) fn get<T: Number>(&self, attribute: CUmemPool_attribute) -> Result<T> {
        let mut value = T::default();
        let output = (&raw mut value).cast::<c_void>();
        with_relaxed_capture_mode(self.driver(), || {
            // SAFETY: the pool is live, and `value` has the size of the attribute, whose type the
            // caller chooses.
            unsafe {
                call!(
                    self.driver(),
                    cuMemPoolGetAttribute(self.as_raw(), attribute, output)
                )
            }
        })
        .map_err(|error| error.about(name(attribute)))?;
        Ok(value)
    }

    /// Sets an attribute.
    pub(super) fn set<T: Number>(
        &self,
        attribute: CUmemPool_attribute,
        mut value: T,
    ) -> Result<()> {
        let output = (&raw mut value).cast::<c_void>();
        // SAFETY: the pool is live, and `value` has the type of the attribute, which the caller
        // chooses.
        let result = unsafe {
            call!(
                self.driver(),
                cuMemPoolSetAttribute(self.as_raw(), attribute, output)
            )
        };
        result.map_err(|error| error.about(name(attribute)))
    }

    fn get_flag(&self, attribute: CUmemPool_attribute) -> Result<bool> {
        self.get::<i32>(attribute).map(|value| value != 0)
    }

    fn set_flag(&self, attribute: CUmemPool_attribute, value: bool) -> Result<()> {
        self.set(attribute, i32::from(value))
    }
}

/// A type of attributes, valid for every bit pattern.
pub(super) trait Number: Copy + Default {}

impl Number for i32 {}
impl Number for u32 {}
impl Number for u64 {}

/// Returns the name of an attribute for errors.
fn name(attribute: CUmemPool_attribute) -> String {
    use CUmemPool_attribute as Attribute;
    let name = match attribute {
        Attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES => {
            "reuse following event dependencies"
        }
        Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC => "opportunistic reuse",
        Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => {
            "reuse through internal dependencies"
        }
        Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => "release threshold",
        CUmemPool_attribute(number) => return format!("attribute {number} of a pool"),
    };
    format!("{name} of a pool")
}
