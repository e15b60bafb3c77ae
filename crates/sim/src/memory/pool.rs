//! Pools: what their memory is accounted to.

use curium_sys::{CUmemPoolHandle_st, CUresult};

use crate::driver::Result;
use crate::handle::{Kind, Object};

/// A pool that allocations in stream order come from.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) device: usize,
    pub(crate) is_default: bool,
    /// Whether the pool was destroyed while memory was allocated from it, and lives on for that.
    pub(crate) is_retired: bool,
    /// The most bytes that the pool may hold; 0 for no limit.
    pub(crate) max_size: u64,
    /// The bytes that the pool keeps at a synchronisation, even if they are unused.
    pub(crate) threshold: u64,
    pub(crate) used: u64,
    pub(crate) used_high: u64,
    /// The bytes that the pool has taken from the device.
    pub(crate) reserved: u64,
    pub(crate) reserved_high: u64,
    /// The three flags on how freed memory may be used again, in the order of their attributes.
    pub(crate) reuse: [i32; 3],
}

impl Object for Pool {
    type Raw = CUmemPoolHandle_st;
    const KIND: Kind = Kind::Pool;
}

/// A pool takes memory from the device in steps of this.
const STEP: u64 = 32 << 20;

impl Pool {
    pub(crate) fn new(device: usize, is_default: bool, max_size: u64) -> Self {
        Self {
            device,
            is_default,
            is_retired: false,
            max_size,
            threshold: 0,
            used: 0,
            used_high: 0,
            reserved: 0,
            reserved_high: 0,
            reuse: [1; 3],
        }
    }

    /// Accounts for an allocation, if the limits of the pool and of the device allow it; `left` is what the device has.
    pub(crate) fn charge(&mut self, size: u64, left: u64) -> Result {
        let used = self.used.checked_add(size).ok_or(CUresult::CUDA_ERROR_OUT_OF_MEMORY)?;
        let room = self.reserved + left;
        let limit = if self.max_size == 0 { room } else { self.max_size.min(room) };
        if used > limit {
            return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
        self.used = used;
        self.used_high = self.used_high.max(used);
        // The last step may be cut short by the limit.
        self.reserved = self.reserved.max(used.next_multiple_of(STEP).min(limit));
        self.reserved_high = self.reserved_high.max(self.reserved);
        Ok(())
    }

    /// Gives unused memory back to the device, but for `keep` bytes.
    pub(crate) fn trim(&mut self, keep: u64) {
        let kept = self.used.max(keep).checked_next_multiple_of(STEP);
        self.reserved = self.reserved.min(kept.unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_reserves_in_steps_and_trims_to_its_threshold() {
        let mut pool = Pool::new(0, true, 0);
        pool.charge(1000, 1 << 30).expect("there is room");
        assert_eq!((pool.used, pool.reserved), (1000, STEP));
        pool.charge(STEP, 1 << 30).expect("there is room");
        assert_eq!(pool.reserved, 2 * STEP);
        pool.used = 0;
        pool.trim(STEP);
        assert_eq!((pool.reserved, pool.reserved_high), (STEP, 2 * STEP));
    }

    #[test]
    fn pool_with_the_largest_threshold_keeps_everything() {
        let mut pool = Pool::new(0, true, 0);
        pool.charge(1000, 1 << 30).expect("there is room");
        pool.used = 0;
        pool.trim(u64::MAX);
        assert_eq!(pool.reserved, STEP);
    }

    #[test]
    fn pool_never_reserves_more_than_the_device_has_left() {
        let mut pool = Pool::new(0, true, 0);
        pool.charge(4096, 8192).expect("there is room");
        assert_eq!(pool.reserved, 8192);
        assert_eq!(pool.charge(4097, 0), Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    }

    #[test]
    fn pool_with_a_maximum_refuses_to_grow_beyond_it() {
        let mut pool = Pool::new(0, false, 1 << 20);
        assert_eq!(pool.charge((1 << 20) + 1, 1 << 30), Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        assert_eq!(pool.charge(1 << 20, 1 << 30), Ok(()));
    }
}
