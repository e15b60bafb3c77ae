//! Graph memory: nodes that allocate and free, and the reservations of devices.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use curium_sys::{CUDA_MEM_ALLOC_NODE_PARAMS, CUdeviceptr};

use crate::object::graph::content::Content;
use crate::object::graph::plan::Plan;

/// The step in which graphs reserve memory on a device.
const STEP: u64 = 32 << 20;

/// Memory of an allocation node. It exists as long as the graph and its executables do and, if a
/// launch has allocated it, until it is freed; its contents are not kept between launches.
#[derive(Clone)]
pub(crate) struct Allocation {
    pub(crate) params: CUDA_MEM_ALLOC_NODE_PARAMS,
    /// Releases the memory when the last node and step are dropped.
    pub(crate) _reservation: Arc<dyn Any + Send + Sync>,
}

/// The memory of all graphs, by address.
#[derive(Default)]
pub(crate) struct GraphMemory {
    pub(crate) allocations: HashMap<CUdeviceptr, NodeMemory>,
    /// The bytes of each device that graphs keep until they are trimmed.
    reserved: HashMap<usize, u64>,
    /// The high-water marks of used and reserved memory of each device since the last reset.
    pub(crate) high: HashMap<usize, [u64; 2]>,
}

/// Memory of one allocation node.
#[derive(Clone, Copy)]
pub(crate) struct NodeMemory {
    pub(crate) device: usize,
    pub(crate) size: u64,
    /// `true` if a launch has allocated it and nothing has freed it since.
    pub(crate) is_live: bool,
    /// `true` if a launch has allocated it and it was not trimmed since.
    pub(crate) is_mapped: bool,
    /// `true` if no graph or executable has the node any more. The memory is then released when it
    /// is freed.
    pub(crate) is_orphan: bool,
}

/// The result of freeing memory of a graph.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Freed {
    /// The next launch allocates it again.
    ForReuse,
    /// No node can allocate it again: the caller releases it after all work enqueued before.
    ForGood,
}

// SAFETY: the pointer to the access descriptions is null: they were read when the node was made.
unsafe impl Send for Allocation {}

// SAFETY: no method modifies the parameters or follows the null pointer.
unsafe impl Sync for Allocation {}

impl GraphMemory {
    /// Returns `true` if an address is memory of a graph.
    pub(crate) fn contains(&self, address: CUdeviceptr) -> bool {
        self.allocations.contains_key(&address)
    }

    pub(crate) fn is_live(&self, address: CUdeviceptr) -> bool {
        self.allocations
            .get(&address)
            .is_some_and(|memory| memory.is_live)
    }

    pub(crate) fn set_live(&mut self, addresses: impl Iterator<Item = CUdeviceptr>) {
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
    pub(crate) fn free(&mut self, address: CUdeviceptr) -> Option<Freed> {
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

    /// Records that the last node of an allocation is gone. Returns `true` if the allocation
    /// remains because it is live.
    pub(crate) fn orphan(&mut self, address: CUdeviceptr) -> bool {
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

    /// Returns the bytes of a device in use and reserved. As on hardware, memory that a launch
    /// freed remains in use until it is trimmed.
    pub(crate) fn bytes(&self, device: usize) -> [u64; 2] {
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
    pub(crate) fn trim(&mut self, device: usize) {
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
    pub(crate) fn allocated(&self) -> impl Iterator<Item = CUdeviceptr> {
        self.steps.iter().filter_map(|step| match &step.content {
            Content::Allocate(allocation) => Some(allocation.address()),
            _ => None,
        })
    }

    pub(crate) fn freed(&self) -> impl Iterator<Item = CUdeviceptr> {
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
