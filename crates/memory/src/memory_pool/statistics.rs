//! Pool statistics.

use curium_driver::Result;
use curium_driver::sys::CUmemPool_attribute;

use super::MemoryPool;

/// The memory usage of a pool in bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PoolStatistics {
    /// The memory reserved from the system.
    pub reserved: u64,
    /// The high-water mark of the reserved memory since the last reset.
    pub reserved_high: u64,
    /// The memory in use.
    pub used: u64,
    /// The high-water mark of the memory in use since the last reset.
    pub used_high: u64,
}

impl MemoryPool {
    /// Queries the memory usage. The values are queried one by one, so concurrent operations may
    /// affect only some of them.
    ///
    /// CUDA: `cuMemPoolGetAttribute`, four times.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "CU_MEMPOOL_ATTR_USED_MEM_CURRENT")]
    #[doc(alias = "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT")]
    pub fn statistics(&self) -> Result<PoolStatistics> {
        Ok(PoolStatistics {
            reserved: self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_high: self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?,
            used: self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
            used_high: self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?,
        })
    }

    /// Resets the high-water marks of [`PoolStatistics`] to the current values.
    ///
    /// CUDA: `cuMemPoolSetAttribute`, twice.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "CU_MEMPOOL_ATTR_USED_MEM_HIGH")]
    #[doc(alias = "CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH")]
    pub fn reset_high_watermarks(&self) -> Result<()> {
        self.set(
            CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
            0_u64,
        )?;
        self.set(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0_u64)
    }
}
