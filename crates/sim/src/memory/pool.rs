//! Memory pools and their accounting.

use curium_sys::{CUmemPool_attribute, CUmemPoolHandle_st, CUresult};

use crate::handle::{Id, Kind, Object};
use crate::host_pointer::HostPtr;
use crate::memory::{Allocation, Location, Memory, Origin, Owner, Purpose, READ, Records, WRITE};
use crate::result::Result;

/// A memory pool of stream-ordered allocations.
#[derive(Debug)]
pub(crate) struct Pool {
    /// The location of its memory; `None` for managed memory without a preferred location.
    pub(crate) location: Option<Location>,
    pub(crate) is_managed: bool,
    pub(crate) is_default: bool,
    /// The mask of the handle types that it may be exported as.
    pub(crate) handle_types: u32,
    /// `true` if the pool was exported. Only then can its allocations be exported.
    pub(crate) is_shared: bool,
    /// The access rights of devices that do not have the memory.
    pub(crate) access: Vec<(Location, u32)>,
    /// The origin of a pool that was imported from another process.
    pub(crate) foreign: Option<Foreign>,
    /// `true` if the pool was destroyed while memory was allocated from it. It lives until that
    /// memory is freed.
    pub(crate) is_retired: bool,
    /// The maximum size in bytes; 0 for no limit.
    pub(crate) max_size: u64,
    /// The release threshold: the number of unused bytes that the pool keeps at a synchronization.
    pub(crate) threshold: u64,
    pub(crate) used: u64,
    pub(crate) used_high: u64,
    /// The number of bytes that the pool has reserved on the device.
    pub(crate) reserved: u64,
    pub(crate) reserved_high: u64,
    pub(crate) reuse: ReuseFlags,
}

/// The attributes of a pool for the reuse of freed memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReuseFlags {
    follow_event_dependencies: i32,
    allow_opportunistic: i32,
    allow_internal_dependencies: i32,
}

/// A pool in its own process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Foreign {
    pub(crate) origin: Origin,
    pub(crate) pool: u64,
}

impl ReuseFlags {
    /// Returns the flag of an attribute; `None` for other attributes.
    pub(crate) fn flag_mut(&mut self, attribute: CUmemPool_attribute) -> Option<&mut i32> {
        match attribute {
            CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES => {
                Some(&mut self.follow_event_dependencies)
            }
            CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC => {
                Some(&mut self.allow_opportunistic)
            }
            CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => {
                Some(&mut self.allow_internal_dependencies)
            }
            _ => None,
        }
    }
}

impl Object for Pool {
    type Raw = CUmemPoolHandle_st;
    const KIND: Kind = Kind::Pool;
}

/// The step in which a pool reserves memory on the device.
const STEP: u64 = 32 << 20;

impl Pool {
    /// Creates a pool of device memory.
    pub(crate) fn for_device(device: usize, is_default: bool, max_size: u64) -> Self {
        Self {
            is_default,
            max_size,
            ..Self::at(Some(Location::Device(device)), false)
        }
    }

    /// Creates a pool of pinned or managed memory.
    pub(crate) fn at(location: Option<Location>, is_managed: bool) -> Self {
        Self {
            location,
            is_managed,
            is_default: false,
            handle_types: 0,
            is_shared: false,
            access: Vec::new(),
            foreign: None,
            is_retired: false,
            max_size: 0,
            threshold: 0,
            used: 0,
            used_high: 0,
            reserved: 0,
            reserved_high: 0,
            reuse: ReuseFlags {
                follow_event_dependencies: 1,
                allow_opportunistic: 1,
                allow_internal_dependencies: 1,
            },
        }
    }

    /// Returns the device of its memory.
    pub(crate) fn device(&self) -> Option<usize> {
        match self.location {
            Some(Location::Device(device)) if !self.is_managed => Some(device),
            _ => None,
        }
    }

    /// Returns the access rights of a location.
    pub(crate) fn rights(&self, location: Location) -> u32 {
        // Devices need rights to memory of the host, as to memory of other devices.
        let is_on_host = !matches!(self.location, Some(Location::Device(_)));
        let is_host = !matches!(location, Location::Device(_));
        if self.location == Some(location) || self.is_managed || is_on_host && is_host {
            return READ | WRITE;
        }
        self.access
            .iter()
            .find(|(accessor, _)| *accessor == location)
            .map_or(0, |(_, flags)| *flags)
    }

    /// Sets the access rights of a location.
    pub(crate) fn set_rights(&mut self, location: Location, flags: u32) {
        self.access.retain(|(accessor, _)| *accessor != location);
        self.access.push((location, flags));
    }

    /// Accounts for an allocation, if the limits of the pool and the free bytes of the device,
    /// `available`, allow it.
    pub(crate) fn charge(&mut self, size: u64, available: u64) -> Result {
        let used = self
            .used
            .checked_add(size)
            .ok_or(CUresult::CUDA_ERROR_OUT_OF_MEMORY)?;
        let room = self.reserved.saturating_add(available);
        let limit = if self.max_size == 0 {
            room
        } else {
            self.max_size.min(room)
        };
        if used > limit {
            return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        }
        self.used = used;
        self.used_high = self.used_high.max(used);
        // The limit may shorten the last step.
        let step = used.checked_next_multiple_of(STEP).unwrap_or(limit);
        self.reserved = self.reserved.max(step.min(limit));
        self.reserved_high = self.reserved_high.max(self.reserved);
        Ok(())
    }

    /// Releases unused memory to the device, except for `keep` bytes.
    pub(crate) fn trim(&mut self, keep: u64) {
        let reserved = self.used.max(keep).checked_next_multiple_of(STEP);
        self.reserved = self.reserved.min(reserved.unwrap_or(u64::MAX));
    }
}

/// The memory pools of a driver.
#[derive(Clone, Copy)]
pub(crate) struct Pools<'a> {
    pub(super) memory: &'a Memory,
}

impl Pools<'_> {
    /// Allocates memory from a pool for work in a context, and returns its address.
    pub(crate) fn allocate_in_pool(&self, pool: Id<Pool>, size: u64, owner: Owner) -> Result<u64> {
        let records = self.memory.read();
        // Only the process that created a pool allocates from it.
        let properties = records
            .pools
            .get(pool)
            .filter(|pool| pool.foreign.is_none())
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let device = properties.device();
        let is_managed = properties.is_managed;
        drop(records);
        if let Some(device) = device {
            return self.memory.allocate_on_device(
                size,
                Owner { device, ..owner },
                Purpose::Pool(pool),
            );
        }
        let purpose = if is_managed {
            Purpose::ManagedPool(pool)
        } else {
            Purpose::HostPool(pool)
        };
        self.memory
            .write()
            .charge(&owner, &purpose, size, u64::MAX)?;
        self.memory
            .allocate_on_host(size, owner, purpose)
            .map(HostPtr::expose)
            .inspect_err(|_| self.memory.write().discharge(&owner, &purpose, size))
    }

    /// Returns `true` if a graph can allocate memory from a pool: it can neither be exported to
    /// other processes nor be the host's.
    pub(crate) fn allows_graph_memory(&self, pool: Id<Pool>) -> bool {
        self.memory.read().pools.get(pool).is_some_and(|pool| {
            let is_on_host = matches!(pool.location, Some(Location::Host | Location::HostNuma(_)));
            pool.handle_types == 0 && !is_on_host
        })
    }

    /// Returns `true` if a pool was exported to other processes: its memory can be, too.
    pub(crate) fn is_exported(&self, pool: Id<Pool>) -> bool {
        self.memory
            .read()
            .pools
            .get(pool)
            .is_some_and(|pool| pool.is_shared)
    }

    /// Returns `true` if a pool has less unused memory than an allocation needs.
    pub(crate) fn needs_growth(&self, pool: Id<Pool>, size: u64) -> bool {
        self.memory
            .read()
            .pools
            .get(pool)
            .is_some_and(|pool| pool.used.saturating_add(size) > pool.reserved)
    }

    /// Returns `true` if a device has these access rights to the pool that allocated the memory at
    /// an address, if a pool did.
    pub(crate) fn pool_allows_at(&self, address: u64, device: usize, rights: u32) -> bool {
        let records = self.memory.read();
        records.find(address).is_none_or(|allocation| {
            !matches!(allocation.purpose, Purpose::Pool(_) | Purpose::HostPool(_))
                || records.allows(allocation, Some(device), rights)
        })
    }

    /// Returns the default pool of a location, which is created on first use.
    pub(crate) fn default_pool(&self, location: Option<Location>, is_managed: bool) -> Id<Pool> {
        let records = &mut *self.memory.write();
        if let (Some(Location::Device(device)), false) = (location, is_managed) {
            return records.default_pools[device];
        }
        let existing = records
            .pools
            .iter()
            .find(|(_, pool)| {
                pool.is_default && pool.location == location && pool.is_managed == is_managed
            })
            .map(|(id, _)| id);
        existing.unwrap_or_else(|| {
            records.pools.insert(Pool {
                is_default: true,
                ..Pool::at(location, is_managed)
            })
        })
    }

    /// Returns the current pool of a location.
    pub(crate) fn current_pool(&self, location: Option<Location>, is_managed: bool) -> Id<Pool> {
        if let (Some(Location::Device(device)), false) = (location, is_managed) {
            return self.memory.read().current_pools[device];
        }
        let chosen = self.memory.read().chosen_pool(location, is_managed);
        chosen.unwrap_or_else(|| self.default_pool(location, is_managed))
    }

    /// Sets the current pool of a location.
    pub(crate) fn set_current_pool(
        &self,
        location: Option<Location>,
        is_managed: bool,
        id: Id<Pool>,
    ) -> Result {
        let records = &mut *self.memory.write();
        let pool = records
            .pools
            .get(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if pool.location != location || pool.is_managed != is_managed || pool.foreign.is_some() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        match pool.device() {
            Some(device) => records.current_pools[device] = id,
            None => {
                let before = records.chosen_pool(location, is_managed);
                records
                    .chosen_pools
                    .retain(|chosen| Some(*chosen) != before);
                records.chosen_pools.push(id);
            }
        }
        Ok(())
    }
}

impl Records {
    /// Destroys a pool, or retires it until its allocations are freed. Devices fall back to their
    /// default pool.
    pub(crate) fn retire_pool(&mut self, id: Id<Pool>) {
        for (current, default) in self.current_pools.iter_mut().zip(&self.default_pools) {
            if *current == id {
                *current = *default;
            }
        }
        self.chosen_pools.retain(|chosen| *chosen != id);
        if let Some(pool) = self.pools.get_mut(id) {
            pool.is_retired = true;
            pool.trim(0);
        }
        self.drop_pool_if_unused(id);
    }

    fn chosen_pool(&self, location: Option<Location>, is_managed: bool) -> Option<Id<Pool>> {
        self.chosen_pools.iter().copied().find(|id| {
            self.pools
                .get(*id)
                .is_some_and(|pool| pool.location == location && pool.is_managed == is_managed)
        })
    }

    pub(super) fn drop_pool_if_unused(&mut self, id: Id<Pool>) {
        if self
            .pools
            .get(id)
            .is_some_and(|pool| pool.is_retired && pool.used == 0)
        {
            self.pools.remove(id);
        }
    }

    /// Returns `true` if a device has these access rights to memory of a pool.
    pub(super) fn pool_allows(&self, pool: Id<Pool>, device: usize, rights: u32) -> bool {
        self.pools
            .get(pool)
            .is_some_and(|pool| pool.rights(Location::Device(device)) & rights == rights)
    }

    /// Returns `true` if any device has these access rights to memory of a pool on the host.
    pub(super) fn is_host_pool_accessible(&self, pool: Id<Pool>, rights: u32) -> bool {
        (0..self.current_pools.len()).any(|device| self.pool_allows(pool, device, rights))
    }

    /// Returns the pool of an allocation.
    pub(crate) fn allocation_pool(allocation: &Allocation) -> Option<Id<Pool>> {
        match allocation.purpose {
            Purpose::Pool(pool) | Purpose::HostPool(pool) | Purpose::ManagedPool(pool) => {
                Some(pool)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_reserves_in_steps_and_trims_to_its_threshold() {
        let mut pool = Pool::for_device(0, true, 0);
        pool.charge(1000, 1 << 30).expect("over the budget");
        assert_eq!((pool.used, pool.reserved), (1000, STEP));
        pool.charge(STEP, 1 << 30).expect("over the budget");
        assert_eq!(pool.reserved, 2 * STEP);
        pool.used = 0;
        pool.trim(STEP);
        assert_eq!((pool.reserved, pool.reserved_high), (STEP, 2 * STEP));
        pool.trim(u64::MAX);
        assert_eq!(pool.reserved, STEP);
    }

    #[test]
    fn pool_with_the_largest_threshold_keeps_everything() {
        let mut pool = Pool::for_device(0, true, 0);
        pool.charge(1000, 1 << 30).expect("over the budget");
        pool.used = 0;
        pool.trim(u64::MAX);
        assert_eq!(pool.reserved, STEP);
    }

    #[test]
    fn pool_never_reserves_more_than_the_device_has_left() {
        let mut pool = Pool::for_device(0, true, 0);
        pool.charge(4096, 8192).expect("over the budget");
        assert_eq!(pool.reserved, 8192);
        assert_eq!(
            pool.charge(4097, 0),
            Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY)
        );
    }

    #[test]
    fn pool_with_a_maximum_refuses_to_grow_beyond_it() {
        let mut pool = Pool::for_device(0, false, 1 << 20);
        assert_eq!(
            pool.charge((1 << 20) + 1, 1 << 30),
            Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY)
        );
        assert_eq!(pool.charge(1 << 20, 1 << 30), Ok(()));
    }
}
