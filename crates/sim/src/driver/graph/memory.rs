//! Graph memory: nodes that allocate and free, and the reservations of devices.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Weak};

use crate::lock::MutexGuard;
use curium_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdevice, CUdeviceptr, CUgraphMem_attribute, CUgraphNode_st,
    CUmemAllocationType, CUresult,
};

use super::plan::Plan;
use super::{Content, Graph};
use crate::argument::Pointer;
use crate::driver::virtual_memory::raw_location;
use crate::driver::{Driver, Result, State};
use crate::handle::Id;
use crate::memory::{Location, Owner, Pool, Purpose};

/// The step in which graphs reserve memory on a device.
const STEP: u64 = 32 << 20;

/// Memory of an allocation node. It exists as long as the graph and its executables do and, if a launch has allocated it, until it is
/// freed; its contents are not kept between launches.
#[derive(Clone)]
pub(crate) struct Allocation {
    pub(super) params: CUDA_MEM_ALLOC_NODE_PARAMS,
    _memory: Arc<Reservation>,
}

/// The memory of all graphs, by address.
#[derive(Default)]
pub(crate) struct GraphMemory {
    allocations: HashMap<CUdeviceptr, NodeMemory>,
    /// The bytes of each device that graphs keep until they are trimmed.
    reserved: HashMap<usize, u64>,
    /// The high-water marks of used and reserved memory of each device since the last reset.
    high: HashMap<usize, [u64; 2]>,
}

/// Memory of one allocation node.
#[derive(Clone, Copy)]
struct NodeMemory {
    device: usize,
    size: u64,
    /// `true` if a launch has allocated it and nothing has freed it since.
    is_live: bool,
    /// `true` if a launch has allocated it and it was not trimmed since.
    is_mapped: bool,
    /// `true` if no graph or executable has the node any more. The memory is then released when it is freed.
    is_orphan: bool,
}

/// The result of freeing memory of a graph.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::driver) enum Freed {
    /// The next launch allocates it again.
    ForReuse,
    /// No node can allocate it again: the caller releases it after all work enqueued before.
    ForGood,
}

/// Memory that is released with its last node and step.
struct Reservation {
    driver: Weak<Driver>,
    address: CUdeviceptr,
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

// SAFETY: the pointer to the access descriptions is null: they were read when the node was made.
unsafe impl Send for Allocation {}
// SAFETY: no method modifies the parameters or follows the null pointer.
unsafe impl Sync for Allocation {}

impl Driver {
    /// Returns an allocation node of the device's default pool, whose address is written into the description.
    pub(super) fn allocation_content(
        &self,
        state: &State,
        described: &mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) -> Result<Content> {
        // As on hardware, no context needs to be current: the memory belongs to none.
        let context = self.current().unwrap_or(Id::from_number(0));
        let context = state.owning_context(context);
        let mut params = *described;
        let properties = &params.poolProps;
        let (location, _) = self.pool_place(&properties.location, properties.allocType)?;
        let Some(Location::Device(device)) = location.filter(|_| params.bytesize != 0) else {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        };
        let pool = self.memory().read().default_pools[device];
        params.accessDescs = std::ptr::null();
        params.accessDescCount = 0;
        let allocation = self.reserve(Owner { context, device }, pool, params)?;
        described.dptr = allocation.address();
        Ok(Content::Allocate(allocation))
    }

    /// Allocates memory of a graph with the properties of a pool.
    pub(in crate::driver) fn graph_allocation(
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

    fn reserve(
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
        let memory = Arc::new(Reservation {
            driver,
            address: params.dptr,
        });
        Ok(Allocation {
            params,
            _memory: memory,
        })
    }
}

impl Driver {
    fn graph_memory(&self) -> MutexGuard<'_, GraphMemory> {
        self.graph_memory.lock()
    }

    /// Returns `true` if an address is memory of a graph.
    pub(in crate::driver) fn is_graph_memory(&self, address: CUdeviceptr) -> bool {
        self.graph_memory().allocations.contains_key(&address)
    }

    /// Frees memory that a launch of a graph allocated.
    pub(in crate::driver) fn free_graph_memory(&self, address: CUdeviceptr) -> Result<Freed> {
        self.graph_memory()
            .free(address)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// Records that a launch allocates and frees memory, and returns the memory to release after it. Memory that an earlier launch
    /// allocated must have been freed, unless the executable frees it on launch.
    pub(super) fn allocate_graph_memory(
        &self,
        plan: &Plan,
        frees_on_launch: bool,
    ) -> Result<Vec<CUdeviceptr>> {
        let mut memory = self.graph_memory();
        let allocated: Vec<_> = plan.allocated().collect();
        if !frees_on_launch && allocated.iter().any(|address| memory.is_live(*address)) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        memory.set_live(allocated.into_iter());
        Ok(plan
            .freed()
            .filter(|address| memory.free(*address) == Some(Freed::ForGood))
            .collect())
    }
}

impl GraphMemory {
    fn is_live(&self, address: CUdeviceptr) -> bool {
        self.allocations
            .get(&address)
            .is_some_and(|memory| memory.is_live)
    }

    fn set_live(&mut self, addresses: impl Iterator<Item = CUdeviceptr>) {
        for address in addresses {
            let Some(memory) = self.allocations.get_mut(&address) else {
                continue;
            };
            memory.is_live = true;
            memory.is_mapped = true;
            let device = memory.device;
            self.record_high_water_mark(device);
        }
    }

    /// Frees a live allocation, or returns `None` if the address has none.
    fn free(&mut self, address: CUdeviceptr) -> Option<Freed> {
        let memory = self
            .allocations
            .get_mut(&address)
            .filter(|memory| memory.is_live)?;
        memory.is_live = false;
        if !memory.is_orphan {
            return Some(Freed::ForReuse);
        }
        self.allocations.remove(&address);
        Some(Freed::ForGood)
    }

    /// Records that the last node of an allocation is gone. Returns `true` if the allocation remains because it is live.
    fn orphan(&mut self, address: CUdeviceptr) -> bool {
        let Some(memory) = self.allocations.get_mut(&address) else {
            return false;
        };
        memory.is_orphan = true;
        let is_live = memory.is_live;
        if !is_live {
            self.allocations.remove(&address);
        }
        is_live
    }

    /// Returns the bytes of a device in use and reserved. As on hardware, memory that a launch freed remains in use until it is trimmed.
    fn bytes(&self, device: usize) -> [u64; 2] {
        let mapped: u64 = self
            .allocations
            .values()
            .filter(|memory| memory.device == device && memory.is_mapped)
            .map(|memory| memory.size)
            .sum();
        let used = mapped.next_multiple_of(STEP);
        let reserved = self.reserved.get(&device).copied().unwrap_or_default();
        [used, reserved.max(used)]
    }

    fn record_high_water_mark(&mut self, device: usize) {
        let bytes = self.bytes(device);
        self.reserved.insert(device, bytes[1]);
        let high = self.high.entry(device).or_default();
        *high = [high[0].max(bytes[0]), high[1].max(bytes[1])];
    }

    /// Releases the memory of a device that no launch uses.
    fn trim(&mut self, device: usize) {
        for memory in self.allocations.values_mut() {
            if memory.device == device {
                memory.is_mapped = memory.is_live;
            }
        }
        self.reserved.remove(&device);
        self.record_high_water_mark(device);
    }
}

impl Plan {
    /// Returns `true` if an operation on a value accesses managed memory.
    pub(super) fn operates_on_managed_memory(&self, driver: &Driver) -> bool {
        self.steps.iter().any(|step| {
            matches!(&step.content, Content::Batch(batch) if batch.accesses_managed_memory(driver))
                || step
                    .parts
                    .iter()
                    .any(|part| part.operates_on_managed_memory(driver))
        })
    }

    fn allocated(&self) -> impl Iterator<Item = CUdeviceptr> {
        self.steps.iter().filter_map(|step| match &step.content {
            Content::Allocate(allocation) => Some(allocation.address()),
            _ => None,
        })
    }

    fn freed(&self) -> impl Iterator<Item = CUdeviceptr> {
        self.steps.iter().filter_map(|step| {
            if let Content::Free(freed) = step.content {
                Some(freed)
            } else {
                None
            }
        })
    }
}

impl Allocation {
    pub(crate) fn address(&self) -> CUdeviceptr {
        self.params.dptr
    }

    pub(crate) fn size(&self) -> usize {
        self.params.bytesize
    }
}

impl Driver {
    /// Returns a node that frees memory of any graph. No other node of its own graph may free it. The allocating graph may be destroyed.
    pub(in crate::driver) fn free_content(
        &self,
        state: &State,
        graph: Id<Graph>,
        address: CUdeviceptr,
    ) -> Result<Content> {
        let nodes = state.graph_nodes(graph);
        let is_freed = nodes
            .iter()
            .filter_map(|node| state.nodes.get(*node))
            .any(|node| matches!(node.content, Content::Free(freed) if freed == address));
        if is_freed || !self.is_graph_memory(address) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(Content::Free(address))
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuGraphMemAllocNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_MEM_ALLOC_NODE_PARAMS>,
    ) -> Result {
        match &self.lock().node(node)?.1.content {
            Content::Allocate(allocation) => params.write(allocation.params),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    pub(crate) fn cuGraphMemFreeNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        address: Pointer<CUdeviceptr>,
    ) -> Result {
        match self.lock().node(node)?.1.content {
            Content::Free(freed) => address.write(freed),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    pub(crate) fn cuDeviceGraphMemTrim(&self, device: CUdevice) -> Result {
        let device = self.device(device)?;
        self.graph_memory().trim(device);
        Ok(())
    }

    pub(crate) fn cuDeviceGetGraphMemAttribute(
        &self,
        device: CUdevice,
        attribute: CUgraphMem_attribute,
        value: Pointer<c_void>,
    ) -> Result {
        let device = self.device(device)?;
        let memory = self.graph_memory();
        let high = memory.high.get(&device).copied().unwrap_or_default();
        let bytes = match attribute {
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT => memory.bytes(device)[0],
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => high[0],
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT => memory.bytes(device)[1],
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => high[1],
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        // SAFETY: every attribute is a 64-bit number.
        unsafe { value.cast::<u64>() }.write(bytes)
    }

    /// Sets an attribute. The high-water marks can only be reset to zero; they then restart from the memory in use.
    pub(crate) fn cuDeviceSetGraphMemAttribute(
        &self,
        device: CUdevice,
        attribute: CUgraphMem_attribute,
        value: Pointer<c_void>,
    ) -> Result {
        let device = self.device(device)?;
        // SAFETY: every attribute is a 64-bit number.
        let value = unsafe { value.cast::<u64>() }.read()?;
        let which = match attribute {
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => 0,
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => 1,
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        if value != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let mut memory = self.graph_memory();
        let bytes = memory.bytes(device);
        memory.high.entry(device).or_default()[which] = bytes[which];
        Ok(())
    }
}
