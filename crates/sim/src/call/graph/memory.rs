//! Graph memory: nodes that allocate and free, and the reservations of devices.

use std::ffi::c_void;

use curium_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdevice, CUdeviceptr, CUgraphMem_attribute, CUgraphNode_st,
    CUresult,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::driver::locked::Locked;
use crate::handle::Id;
use crate::memory::{Location, Owner};
use crate::object::graph::Graph;
use crate::object::graph::content::Content;
use crate::object::graph::memory::Freed;
use crate::object::graph::plan::Plan;
use crate::result::Result;

impl Call<'_> {
    /// Frees memory that a launch of a graph allocated.
    pub(crate) fn free_graph_memory(&self, address: CUdeviceptr) -> Result<Freed> {
        self.graph_memory()
            .free(address)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// Records that a launch allocates and frees memory, and returns the memory to release after
    /// it. Memory that an earlier launch allocated must have been freed, unless the executable
    /// frees it on launch.
    pub(crate) fn allocate_graph_memory(
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

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGraphMemAllocNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUDA_MEM_ALLOC_NODE_PARAMS>,
    ) -> Result {
        match &self.lock().graphs.node(node)?.1.content {
            Content::Allocate(allocation) => params.write(allocation.params),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    pub(crate) fn cuGraphMemFreeNodeGetParams(
        &self,
        node: Pointer<CUgraphNode_st>,
        address: Pointer<CUdeviceptr>,
    ) -> Result {
        match self.lock().graphs.node(node)?.1.content {
            Content::Free(freed) => address.write(freed),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }

    pub(crate) fn cuDeviceGraphMemTrim(&self, device: CUdevice) -> Result {
        let device = self.devices().device(device)?;
        self.graph_memory().trim(device);
        Ok(())
    }

    pub(crate) fn cuDeviceGetGraphMemAttribute(
        &self,
        device: CUdevice,
        attribute: CUgraphMem_attribute,
        value: Pointer<c_void>,
    ) -> Result {
        let device = self.devices().device(device)?;
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

    /// Sets an attribute. The high-water marks can only be reset to zero; they then restart from
    /// the memory in use.
    pub(crate) fn cuDeviceSetGraphMemAttribute(
        &self,
        device: CUdevice,
        attribute: CUgraphMem_attribute,
        value: Pointer<c_void>,
    ) -> Result {
        let device = self.devices().device(device)?;
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

impl Locked<'_> {
    /// Returns an allocation node of the device's default pool, whose address is written into the
    /// description.
    pub(crate) fn allocation_content(
        &self,
        described: &mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) -> Result<Content> {
        let driver = self.driver();
        // As on hardware, no context needs to be current: the memory belongs to none.
        let context = driver.current().unwrap_or(Id::from_number(0));
        let context = self.contexts.owning_context(context);
        let mut params = *described;
        let properties = &params.poolProps;
        let location = driver
            .devices()
            .pool_location(&properties.location, properties.allocType)?
            .location;
        let Some(Location::Device(device)) = location.filter(|_| params.bytesize != 0) else {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        };
        let pool = driver.memory().read().default_pools[device];
        params.accessDescs = std::ptr::null();
        params.accessDescCount = 0;
        let allocation = driver.reserve(Owner { context, device }, pool, params)?;
        described.dptr = allocation.address();
        Ok(Content::Allocate(allocation))
    }

    /// Returns a node that frees memory of any graph. No other node of its own graph may free it.
    /// The allocating graph may be destroyed.
    pub(crate) fn free_content(&self, graph: Id<Graph>, address: CUdeviceptr) -> Result<Content> {
        let driver = self.driver();
        let nodes = self.graphs.graph_nodes(graph);
        let is_freed = nodes
            .iter()
            .filter_map(|node| self.graphs.get_node(*node))
            .any(|node| matches!(node.content, Content::Free(freed) if freed == address));
        if is_freed || !driver.graph_memory().contains(address) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(Content::Free(address))
    }
}
