//! The memory of a driver: allocations and their owners.
//!
//! Device memory has addresses that host code cannot access ([`Space`]). Pinned and managed memory
//! has the same address on the host, as with unified addressing. Every access is checked against
//! the requested size of the allocation.

mod accessed;
mod advice;
mod alignment;
mod allocation;
#[cfg(all(target_os = "linux", not(miri)))]
mod backing;
mod capability;
mod heap;
#[cfg(not(all(target_os = "linux", not(miri))))]
mod heap_backing;
mod live;
#[cfg(all(target_os = "linux", not(miri)))]
mod mapping;
mod nearby;
#[cfg(all(target_os = "linux", not(miri)))]
mod pageable;
#[cfg(all(target_os = "linux", not(miri)))]
mod pattern;
mod pool;
#[cfg(any(test, all(target_os = "linux", not(miri))))]
mod ranges;
#[cfg(all(target_os = "linux", not(miri)))]
mod reserved;
#[cfg(all(target_os = "linux", not(miri)))]
mod shared_records;
mod sharing;
mod transfer;
mod view;
mod virtual_memory;
mod written;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lock::{Rank, ReadGuard, RwLock, WriteGuard};
use curium_sys::CUresult;

pub(crate) use self::advice::{Advice, PageLocation, Policies};
pub(crate) use self::allocation::{Allocation, Owner, Purpose};
#[cfg(all(target_os = "linux", not(miri)))]
use self::backing::{Backing, ForeignMemory, LABEL_WORDS, Label, Reservation};
pub(crate) use self::capability::Capability;
pub(crate) use self::heap::Heap;
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) use self::heap_backing::SharedRecords;
#[cfg(not(all(target_os = "linux", not(miri))))]
use self::heap_backing::{Backing, ForeignMemory, LABEL_WORDS, Label, Reservation};
use self::nearby::Freed;
pub(crate) use self::pool::{Foreign, Pool};
#[cfg(all(target_os = "linux", not(miri)))]
use self::reserved::Reserved as Space;
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) use self::shared_records::SharedRecords;
pub(crate) use self::sharing::{Origin, SharedAllocation};
pub(crate) use self::transfer::{CopyOperand, Fill};
use crate::host_pointer::HostPtr;

use self::pool::Pools;
use self::sharing::Sharing;
pub(crate) use self::virtual_memory::{GRANULARITY, Location, Physical, Properties, READ, WRITE};
use self::virtual_memory::{Mappings, VirtualMemory};
use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::handle::{Id, Table};
use crate::memory::alignment::ALIGNMENT;
use crate::origin;
use crate::race::{Marks, NOBODY};
use crate::result::Result;

/// The source of device memory on systems where no addresses are reserved for it.
#[cfg(not(all(target_os = "linux", not(miri))))]
type Space = Heap;

/// All memory of one driver.
pub(crate) struct Memory {
    records: RwLock<Records>,
    space: Space,
    heap: Heap,
    budget: u64,
    /// `true` if written bytes are tracked.
    tracks_writes: bool,
    /// `true` if accesses to memory are tracked.
    tracks_accesses: bool,
    /// `true` if kernels access pageable memory of the host.
    has_pageable_access: bool,
}

/// The allocations and pools.
pub(crate) struct Records {
    allocations: BTreeMap<u64, Allocation>,
    pub(crate) pools: Table<Pool>,
    /// The default pool of each device.
    pub(crate) default_pools: Vec<Id<Pool>>,
    /// The pool that each device allocates from unless another is named.
    pub(crate) current_pools: Vec<Id<Pool>>,
    /// The pools that were chosen for memory that is not device memory.
    chosen_pools: Vec<Id<Pool>>,
    /// The memory of other processes, by address.
    foreign: BTreeMap<u64, ForeignMemory>,
    /// The bytes allocated on each device outside of pools.
    used: Vec<u64>,
    virtual_memory: VirtualMemory,
    last_id: u64,
    /// The advice for managed memory, by the address of the allocation.
    policies: BTreeMap<u64, Policies>,
    freed: Freed,
    tracks_writes: bool,
    /// `true` if accesses to memory are tracked.
    tracks_accesses: bool,
}

impl Memory {
    pub(crate) fn new(config: &Config) -> std::result::Result<Self, Error> {
        let mut pools = Table::new();
        let devices = 0..config.devices as usize;
        let default_pools: Vec<_> = devices
            .map(|device| pools.insert(Pool::for_device(device, true, 0)))
            .collect();
        let records = Records {
            allocations: BTreeMap::new(),
            pools,
            current_pools: default_pools.clone(),
            default_pools,
            chosen_pools: Vec::new(),
            foreign: BTreeMap::new(),
            used: vec![0; config.devices as usize],
            virtual_memory: VirtualMemory::new(),
            last_id: 0,
            policies: BTreeMap::new(),
            freed: Freed::default(),
            tracks_writes: config.uninitialized_checks,
            tracks_accesses: config.race_checks,
        };
        // Twice the budget, so that the addresses of freed memory are not reused soon, and twice
        // that for the distance between allocations that begin at large pages.
        let addresses = config
            .memory_budget
            .saturating_mul(u64::from(config.devices))
            .saturating_mul(4);
        Ok(Self {
            records: RwLock::new(Rank::MemoryRecords, records),
            space: Space::new(addresses)?,
            heap: Heap::pinned(),
            budget: config.memory_budget,
            tracks_writes: config.uninitialized_checks,
            tracks_accesses: config.race_checks,
            has_pageable_access: config.has_pageable_memory_access(),
        })
    }

    /// Returns virtual memory management.
    pub(crate) fn mappings(&self) -> Mappings<'_> {
        Mappings { memory: self }
    }

    /// Returns the memory pools.
    pub(crate) fn pools(&self) -> Pools<'_> {
        Pools { memory: self }
    }

    /// Returns the memory that processes share.
    pub(crate) fn sharing(&self) -> Sharing<'_> {
        Sharing { memory: self }
    }

    pub(crate) fn read(&self) -> ReadGuard<'_, Records> {
        self.records.read()
    }

    pub(crate) fn write(&self) -> WriteGuard<'_, Records> {
        self.records.write()
    }

    /// Allocates device memory, filled with [`POISON`], and returns its address.
    pub(crate) fn allocate_on_device(
        &self,
        size: u64,
        owner: Owner,
        purpose: Purpose,
    ) -> Result<u64> {
        let mut records = self.write();
        records.charge(&owner, &purpose, size, self.budget)?;
        let Some((base, host)) = self.space.allocate(size) else {
            records.discharge(&owner, &purpose, size);
            return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        };
        records.insert(base, size, host, owner, purpose);
        Ok(base)
    }

    /// Allocates host memory, filled with [`POISON`], and returns its location.
    pub(crate) fn allocate_on_host(
        &self,
        size: u64,
        owner: Owner,
        purpose: Purpose,
    ) -> Result<HostPtr> {
        let (base, host) = self
            .heap
            .allocate(size)
            .ok_or(CUresult::CUDA_ERROR_OUT_OF_MEMORY)?;
        self.write().insert(base, size, host, owner, purpose);
        Ok(host)
    }

    /// Registers memory of the caller with the device.
    pub(crate) fn register(&self, host: HostPtr, size: u64, owner: Owner, flags: u32) -> Result {
        let mut records = self.write();
        let base = host.expose();
        let end = base
            .checked_add(size)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let overlaps = records
            .allocations
            .range(..end)
            .next_back()
            .is_some_and(|(_, before)| before.end() > base);
        if overlaps {
            return Err(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        }
        records.insert(base, size, host, owner, Purpose::Registered { flags });
        Ok(())
    }

    /// Returns the allocation that contains `address`.
    pub(crate) fn find(&self, address: u64) -> Option<Allocation> {
        self.read().find(address).cloned()
    }

    /// Returns `true` if `size` bytes from `address` are in one allocation, or in contiguous
    /// mappings that a device may access.
    pub(crate) fn contains(&self, address: u64, size: u64) -> bool {
        self.read().contains(address, size)
    }

    /// Makes copies from and to the allocation at `address` synchronous, if its kind supports it.
    pub(crate) fn set_synchronous(&self, address: u64, is_synchronous: bool) -> Result {
        let base = self
            .find(address)
            .filter(|allocation| !matches!(allocation.purpose, Purpose::Pool(_)))
            .map(|allocation| allocation.base);
        let base = base.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if let Some(allocation) = self.write().allocations.get_mut(&base) {
            allocation.is_synchronous = is_synchronous;
        }
        Ok(())
    }

    /// Returns `true` if copies from and to `address` are synchronous.
    pub(crate) fn is_synchronous(&self, address: u64) -> bool {
        self.read()
            .find(address)
            .is_some_and(|allocation| allocation.is_synchronous)
    }

    /// Returns `true` if `address` is in memory that the host cannot access, and whose copies do
    /// not wait by an attribute.
    pub(crate) fn is_on_device(&self, address: u64) -> bool {
        self.read()
            .find(address)
            .is_none_or(|allocation| !allocation.purpose.is_on_host() && !allocation.is_synchronous)
    }

    /// Returns `true` if `address` is in memory that was allocated in stream order.
    pub(crate) fn is_stream_ordered(&self, address: u64) -> bool {
        self.read()
            .find(address)
            .is_some_and(|allocation| Records::allocation_pool(allocation).is_some())
    }

    /// Returns `true` if `address` is in managed memory.
    pub(crate) fn is_managed(&self, address: u64) -> bool {
        self.find(address)
            .is_some_and(|allocation| allocation.purpose.is_managed())
    }

    /// Returns `true` if host code cannot access memory at `address`. Mappings, which the host may
    /// have access to, do not count.
    pub(crate) fn is_closed_to_host(&self, address: u64) -> bool {
        let is_mapped = self
            .find(address)
            .is_some_and(|allocation| matches!(allocation.purpose, Purpose::Mapped(_)));
        self.is_device_address(address) && !is_mapped
    }

    /// Returns `true` if only device memory can have `address`.
    pub(crate) fn is_device_address(&self, address: u64) -> bool {
        self.space.owns(address) || self.read().virtual_memory.is_reserved(address)
    }

    /// Returns `true` if `size` bytes from `address` are no longer allocated. Reserved addresses do
    /// not count, since they can be mapped at any time.
    pub(crate) fn is_freed(&self, address: u64, size: u64) -> bool {
        let records = self.read();
        let last = address.saturating_add(size.saturating_sub(1));
        !(records.is_live(address) && records.is_live(last)
            || records.virtual_memory.is_reserved(address))
    }

    /// Returns `true` if `host` is in host memory that the driver allocated.
    pub(crate) fn is_pinned(&self, host: HostPtr) -> bool {
        let allocation = self.find(host.0.addr() as u64);
        allocation.is_some_and(|allocation| matches!(allocation.purpose, Purpose::Pinned { .. }))
    }

    /// Removes an allocation from the caller's view if it starts at `address` and may be freed in
    /// this way. Queued work can still use it until [`Self::free`].
    pub(crate) fn retire(
        &self,
        address: u64,
        is_freeable: impl Fn(&Purpose) -> bool,
    ) -> Result<Allocation> {
        let mut records = self.write();
        let allocation = records
            .allocations
            .get_mut(&address)
            .filter(|allocation| is_freeable(&allocation.purpose) && !allocation.is_retired);
        let allocation = allocation.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        allocation.is_retired = true;
        Ok(allocation.clone())
    }

    /// Frees a retired allocation.
    pub(crate) fn free(&self, address: u64) {
        let mut records = self.write();
        if let Some(allocation) = records.allocations.remove(&address) {
            records.policies.remove(&address);
            records.discharge(&allocation.owner, &allocation.purpose, allocation.size);
            self.release(&allocation);
            records.freed.record(&allocation);
            // The queued work was the last user of this memory of another process.
            records.foreign.remove(&address);
        }
    }

    /// Frees all memory of a context. Memory of a pool belongs to the pool's device, and lives
    /// until it is freed.
    pub(crate) fn free_context_memory(&self, context: Id<Context>) {
        let addresses: Vec<u64> = self
            .read()
            .allocations
            .values()
            .filter(|allocation| {
                allocation.owner.context == context && !allocation.purpose.is_pooled()
            })
            .map(|allocation| allocation.base)
            .collect();
        for address in addresses {
            self.free(address);
        }
    }

    /// Trims every pool to its release threshold.
    pub(crate) fn trim_pools(&self) {
        self.write()
            .pools
            .iter_mut()
            .for_each(|(_, pool)| pool.trim(pool.threshold));
    }

    /// Returns the free bytes of a device.
    pub(crate) fn free_bytes(&self, device: usize) -> u64 {
        self.budget.saturating_sub(self.read().taken(device))
    }

    fn release(&self, allocation: &Allocation) {
        match allocation.purpose {
            Purpose::Device | Purpose::Pool(_) | Purpose::Module | Purpose::Array => {
                self.space
                    .release(allocation.base, allocation.size, allocation.host);
            }
            Purpose::Pinned { .. }
            | Purpose::Managed
            | Purpose::ManagedVariable
            | Purpose::HostPool(_)
            | Purpose::ManagedPool(_) => {
                self.heap
                    .release(allocation.base, allocation.size, allocation.host);
            }
            Purpose::Registered { .. } | Purpose::Mapped(_) | Purpose::Foreign => {}
        }
    }
}

impl Drop for Memory {
    /// Frees the memory that the program did not free.
    fn drop(&mut self) {
        let allocations = std::mem::take(&mut self.write().allocations);
        allocations
            .values()
            .for_each(|allocation| self.release(allocation));
    }
}

impl Records {
    fn is_live(&self, address: u64) -> bool {
        self.find(address)
            .is_some_and(|allocation| !allocation.is_retired)
    }

    /// Returns the allocation that contains `address`.
    pub(crate) fn find(&self, address: u64) -> Option<&Allocation> {
        let (_, allocation) = self.allocations.range(..=address).next_back()?;
        (address < allocation.end()).then_some(allocation)
    }

    fn contains(&self, address: u64, size: u64) -> bool {
        let Some(end) = address.checked_add(size) else {
            return false;
        };
        let mut next = address;
        while let Some(allocation) = self
            .find(next)
            .filter(|allocation| self.allows(allocation, None, READ))
        {
            if end <= allocation.end() {
                return true;
            }
            if !matches!(allocation.purpose, Purpose::Mapped(_)) {
                return false;
            }
            next = allocation.end();
        }
        false
    }

    fn insert(&mut self, base: u64, size: u64, host: HostPtr, owner: Owner, purpose: Purpose) {
        self.last_id += 1;
        let allocation = Allocation {
            base,
            size,
            host,
            owner,
            purpose,
            id: self.last_id,
            is_retired: false,
            is_synchronous: false,
            written: self.fresh(size, &purpose),
            origin: origin::Origin::here(),
            stream: None,
            marks: self
                .tracks_accesses
                .then(|| Arc::new(Marks::new(size, NOBODY))),
        };
        self.allocations.insert(base, allocation);
    }

    /// Returns the bytes of a device that are allocated or reserved by pools.
    fn taken(&self, device: usize) -> u64 {
        let reserved = self
            .pools
            .iter()
            .filter(|(_, pool)| pool.device() == Some(device))
            .map(|(_, pool)| pool.reserved);
        self.used[device] + reserved.sum::<u64>()
    }

    /// Accounts for device memory, if the budget allows it.
    fn charge(&mut self, owner: &Owner, purpose: &Purpose, size: u64, budget: u64) -> Result {
        let available = budget.saturating_sub(self.taken(owner.device));
        if let Purpose::Pool(pool) | Purpose::HostPool(pool) | Purpose::ManagedPool(pool) = purpose
        {
            return self
                .pools
                .get_mut(*pool)
                .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?
                .charge(size, available);
        }
        let charged = size
            .checked_next_multiple_of(ALIGNMENT)
            .filter(|charged| *charged <= available);
        self.used[owner.device] += charged.ok_or(CUresult::CUDA_ERROR_OUT_OF_MEMORY)?;
        Ok(())
    }

    fn discharge(&mut self, owner: &Owner, purpose: &Purpose, size: u64) {
        match purpose {
            Purpose::Pool(pool) | Purpose::HostPool(pool) | Purpose::ManagedPool(pool) => {
                if let Some(pool) = self.pools.get_mut(*pool) {
                    pool.used -= size;
                }
                self.drop_pool_if_unused(*pool);
            }
            Purpose::Device | Purpose::Module | Purpose::Array => {
                self.used[owner.device] -= size.next_multiple_of(ALIGNMENT);
            }
            Purpose::Pinned { .. } | Purpose::Managed | Purpose::ManagedVariable => {}
            Purpose::Registered { .. } | Purpose::Mapped(_) | Purpose::Foreign => {}
        }
    }
}
