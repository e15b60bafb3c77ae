//! Graph memory: nodes that allocate and free, and the reservations of devices.

use std::sync::{Arc, Weak};

use curium_sys::{CUDA_MEM_ALLOC_NODE_PARAMS, CUdeviceptr, CUmemAllocationType};

use crate::driver::Driver;
use crate::driver::virtual_memory::raw_location;
use crate::handle::Id;
use crate::lock::MutexGuard;
use crate::memory::{Location, Owner, Pool, Purpose};
use crate::object::graph::content::Content;
use crate::object::graph::memory::{Allocation, GraphMemory, NodeMemory};
use crate::object::graph::plan::Plan;
use crate::result::Result;

/// Memory that is released with its last node and step.
struct Reservation {
    pub(crate) driver: Weak<Driver>,
    pub(crate) address: CUdeviceptr,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.upgrade()
            && !driver.graph_memory().orphan(self.address)
        {
            driver.memory().free(self.address);
        }
    }
}

impl Driver {
    /// Allocates memory of a graph with the properties of a pool.
    pub(crate) fn graph_allocation(
        &self,
        owner: Owner,
        pool: Id<Pool>,
        size: usize,
    ) -> Result<Allocation> {
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS {
            bytesize: size,
            ..CUDA_MEM_ALLOC_NODE_PARAMS::default()
        };
        params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location = raw_location(Location::Device(owner.device));
        self.reserve(owner, pool, params)
    }

    pub(crate) fn reserve(
        &self,
        owner: Owner,
        pool: Id<Pool>,
        mut params: CUDA_MEM_ALLOC_NODE_PARAMS,
    ) -> Result<Allocation> {
        params.dptr =
            self.memory()
                .allocate_on_device(params.bytesize as u64, owner, Purpose::Pool(pool))?;
        let memory = NodeMemory {
            device: owner.device,
            size: params.bytesize as u64,
            is_live: false,
            is_mapped: false,
            is_orphan: false,
        };
        self.graph_memory().allocations.insert(params.dptr, memory);
        let driver = self
            .shared()
            .map(|driver| Arc::downgrade(&driver))
            .unwrap_or_default();
        let reservation = Reservation {
            driver,
            address: params.dptr,
        };
        Ok(Allocation {
            params,
            _reservation: Arc::new(reservation),
        })
    }

    pub(crate) fn graph_memory(&self) -> MutexGuard<'_, GraphMemory> {
        self.graph_memory.lock()
    }
}

impl Plan {
    /// Returns `true` if an operation on a value accesses managed memory.
    pub(crate) fn operates_on_managed_memory(&self, driver: &Driver) -> bool {
        self.steps.iter().any(|step| {
            matches!(&step.content, Content::Batch(batch) if batch.accesses_managed_memory(driver))
                || step
                    .parts
                    .iter()
                    .any(|part| part.operates_on_managed_memory(driver))
        })
    }
}
