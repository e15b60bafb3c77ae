//! How much memory a pool has, and has had.

use curium_driver::Result;
use curium_driver::sys::CUmemPool_attribute;

use super::MemoryPool;

/// How much memory a pool has, in bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PoolStatistics {
    /// What the pool has taken from the system.
    pub reserved: u64,
    /// The most that it ever had, since this was last reset.
    pub reserved_high: u64,
    /// What of it is in use.
    pub used: u64,
    /// The most that ever was in use, since this was last reset.
    pub used_high: u64,
}

impl MemoryPool {
    /// How much memory the pool has. The figures are asked for one by one, while others may use the pool.
    ///
    /// CUDA: `cuMemPoolGetAttribute`, four times.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "CU_MEMPOOL_ATTR_USED_MEM_CURRENT")]
    #[doc(alias = "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT")]
    #[inline]
    pub fn statistics(&self) -> Result<PoolStatistics> {
        Ok(PoolStatistics {
            reserved: self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_high: self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?,
            used: self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
            used_high: self.get(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?,
        })
    }

    /// Makes the two maxima of [`PoolStatistics`] what the pool has now.
    ///
    /// CUDA: `cuMemPoolSetAttribute`, twice.
    ///
    /// # Errors
    ///
    /// Whatever the driver returns.
    #[doc(alias = "CU_MEMPOOL_ATTR_USED_MEM_HIGH")]
    #[doc(alias = "CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH")]
    #[inline]
    pub fn reset_high_watermarks(&self) -> Result<()> {
        self.set(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0_u64)?;
        self.set(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0_u64)
    }
}
