//! Memory of graphs: nodes that allocate and free, and what devices keep for them.

use std::ffi::c_void;
use std::sync::{Arc, Weak};

use curium_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdevice, CUdeviceptr, CUgraphMem_attribute, CUgraphNode_st, CUmemAllocationType,
    CUresult,
};

use super::{Content, Graph};
use crate::argument::Pointer;
use crate::driver::virtual_memory::raw_location;
use crate::driver::{Context, Driver, Result, State};
use crate::handle::Id;
use crate::memory::{Location, Owner, Pool, Purpose};

/// Memory of an allocation node. It is there for as long as the graph and its executables are; what it holds is not kept between
/// launches.
#[derive(Clone)]
pub(crate) struct Allocation {
    pub(super) params: CUDA_MEM_ALLOC_NODE_PARAMS,
    _memory: Arc<Reservation>,
}

/// Memory that is freed with the last node and step that has it.
struct Reservation {
    driver: Weak<Driver>,
    address: CUdeviceptr,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.upgrade() {
            driver.memory().free(self.address);
        }
    }
}

// SAFETY: the pointer to the access descriptions is null: they were read when the node was made.
unsafe impl Send for Allocation {}
// SAFETY: as for `Send`.
unsafe impl Sync for Allocation {}

impl Driver {
    /// An allocation node of the current device's pool.
    pub(super) fn allocation_content(
        &self,
        context: Id<Context>,
        mut params: CUDA_MEM_ALLOC_NODE_PARAMS,
    ) -> Result<Content> {
        if params.bytesize == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the union's first member is a number, for which any bytes are valid.
        let device = self.device(unsafe { params.poolProps.location.__bindgen_anon_1.id })?;
        let pool = self.memory().read().default_pools[device];
        params.accessDescs = std::ptr::null();
        params.accessDescCount = 0;
        self.reserve(Owner { context, device }, pool, params).map(Content::Allocate)
    }

    /// Memory of a graph with the properties of a pool.
    pub(in crate::driver) fn graph_allocation(&self, owner: Owner, pool: Id<Pool>, size: usize) -> Result<Allocation> {
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: size, ..CUDA_MEM_ALLOC_NODE_PARAMS::default() };
        params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location = raw_location(Location::Device(owner.device));
        self.reserve(owner, pool, params)
    }

    fn reserve(&self, owner: Owner, pool: Id<Pool>, mut params: CUDA_MEM_ALLOC_NODE_PARAMS) -> Result<Allocation> {
        params.dptr = self.memory().allocate_on_device(params.bytesize as u64, owner, Purpose::Pool(pool))?;
        let driver = self.shared().map(|driver| Arc::downgrade(&driver)).unwrap_or_default();
        let memory = Arc::new(Reservation { driver, address: params.dptr });
        Ok(Allocation { params, _memory: memory })
    }
}

impl Allocation {
    pub(crate) fn address(&self) -> CUdeviceptr {
        self.params.dptr
    }
}

impl State {
    /// A node that frees memory of a graph, which no node of its own graph frees yet.
    pub(in crate::driver) fn free_content(&self, graph: Id<Graph>, address: CUdeviceptr) -> Result<Content> {
        let frees = |node: &Content| matches!(node, Content::Free(freed) if *freed == address);
        let is_freed =
            self.nodes_of(graph).iter().filter_map(|node| self.nodes.get(*node)).any(|node| frees(&node.content));
        let allocates = |node: &Content| matches!(node, Content::Allocate(memory) if memory.address() == address);
        if is_freed || !self.nodes.iter().any(|(_, node)| allocates(&node.content)) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(Content::Free(address))
    }
}

#[expect(non_snake_case, reason = "these are C's names")]
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
        self.device(device).map(|_| ())
    }

    /// The memory counts to the pools of the device here, and so none is kept for graphs.
    pub(crate) fn cuDeviceGetGraphMemAttribute(
        &self,
        device: CUdevice,
        attribute: CUgraphMem_attribute,
        value: Pointer<c_void>,
    ) -> Result {
        self.device(device)?;
        if attribute.0 > CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH.0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: every attribute is a 64-bit number.
        unsafe { value.cast::<u64>() }.write(0)
    }
}
