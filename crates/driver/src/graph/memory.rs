//! Allocation and free nodes, and the memory that a device reserves for them.

use std::ffi::c_void;

use curium_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdeviceptr, CUgraphMem_attribute, CUmemAllocationType, CUmemLocationType,
};

use super::node::{Found, FoundNode};
use super::{Graph, Node, TypedNode};
use crate::call;
use crate::{Device, DevicePointer, Result};

/// A node that allocates memory, and where that memory is.
///
/// The address is known when the node is added, and is the same in every launch. The memory is there from the node on until the node
/// that frees it, or until the launch after it where the executable frees by itself.
#[derive(Clone, Copy, Debug)]
pub struct AllocationNode {
    node: Node,
    address: DevicePointer<u8>,
    bytes: usize,
}

/// The memory that a device reserves for allocation nodes, in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct GraphMemory {
    /// The allocated bytes.
    pub used: u64,
    /// The most that was allocated at once.
    pub used_high: u64,
    /// The reserved bytes, allocated or not.
    pub reserved: u64,
    /// The most that was kept at once.
    pub reserved_high: u64,
}

impl AllocationNode {
    /// Returns the address of the memory.
    #[must_use]
    #[inline]
    pub fn address(&self) -> DevicePointer<u8> {
        self.address
    }

    /// Returns the size in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes
    }
}

impl TypedNode for AllocationNode {}

impl FoundNode for AllocationNode {
    #[inline]
    fn at(&self, found: Found) -> Self {
        Self { node: found.0, ..*self }
    }
}

impl std::ops::Deref for AllocationNode {
    type Target = Node;

    #[inline]
    fn deref(&self) -> &Node {
        &self.node
    }
}

impl From<AllocationNode> for Node {
    #[inline]
    fn from(node: AllocationNode) -> Self {
        node.node
    }
}

impl Graph {
    /// Adds a node behind `after` that allocates `bytes` bytes on the context's device.
    ///
    /// Such a node cannot be removed, and its graph neither cloned nor added to another.
    ///
    /// CUDA: `cuGraphAddMemAllocNode`.
    ///
    /// # Errors
    ///
    /// An argument error if a node of `after` is in another graph or was removed; `CUDA_ERROR_INVALID_VALUE` for 0 bytes.
    #[doc(alias = "cuGraphAddMemAllocNode")]
    #[inline]
    pub fn add_allocation(&mut self, after: &[Node], bytes: usize) -> Result<AllocationNode> {
        let context = self.context().clone();
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: bytes, ..CUDA_MEM_ALLOC_NODE_PARAMS::default() };
        params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        params.poolProps.location.__bindgen_anon_1.id = context.device().as_raw();
        let place = &raw mut params;
        let node = self.add("Graph::add_allocation", after, None, |_, spot| {
            let (node, graph, after, count) = (spot.node, spot.graph, spot.after, spot.count);
            let added = context.entered(|driver| {
                // SAFETY: the graph and the nodes are live, the context is current, and `place` takes the address.
                unsafe {
                    call!(driver, cuGraphAddMemAllocNode(node, graph, after, count, place) creates spot.created())
                }
            });
            added.map_err(|error| error.about(format!("{bytes} bytes")))
        })?;
        Ok(AllocationNode { node, address: DevicePointer::from_raw(params.dptr), bytes })
    }

    /// Adds a node behind `after` that frees what another node of the graph allocates.
    ///
    /// CUDA: `cuGraphAddMemFreeNode`.
    ///
    /// # Safety
    ///
    /// The node comes after every node that uses the memory, and nothing else uses it after a launch.
    ///
    /// # Errors
    ///
    /// An argument error if a node is in another graph or was removed; `CUDA_ERROR_INVALID_VALUE` if the memory is freed by another node.
    #[doc(alias = "cuGraphAddMemFreeNode")]
    #[inline]
    pub unsafe fn add_free(&mut self, after: &[Node], allocation: &AllocationNode) -> Result<Node> {
        self.tree.lock()?.member("Graph::add_free", self.number, allocation.node)?;
        let address = allocation.address.as_raw();
        self.add("Graph::add_free", after, None, |driver, spot| {
            let (node, graph, after, count) = (spot.node, spot.graph, spot.after, spot.count);
            // SAFETY: the graph and the nodes are live, and the caller is responsible for the uses of the memory.
            unsafe { call!(driver, cuGraphAddMemFreeNode(node, graph, after, count, address) creates spot.created()) }
        })
    }

    /// Returns the memory that a node of any graph allocates, as the driver knows it: where it is, and how many bytes there are.
    ///
    /// CUDA: `cuGraphMemAllocNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed; `CUDA_ERROR_INVALID_VALUE` if it does not allocate.
    #[doc(alias = "cuGraphMemAllocNodeGetParams")]
    #[inline]
    pub fn allocation(&self, node: Node) -> Result<AllocationNode> {
        let state = self.tree.lock()?;
        let raw = state.member("Graph::allocation", self.number, node)?;
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS::default();
        // SAFETY: the node is live, and `params` is a valid place.
        unsafe { call!(self.driver(), cuGraphMemAllocNodeGetParams(raw, &raw mut params)) }?;
        Ok(AllocationNode { node, address: DevicePointer::from_raw(params.dptr), bytes: params.bytesize })
    }

    /// Returns the address of the memory that a node frees.
    ///
    /// CUDA: `cuGraphMemFreeNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed; `CUDA_ERROR_INVALID_VALUE` if it does not free.
    #[doc(alias = "cuGraphMemFreeNodeGetParams")]
    #[inline]
    pub fn freed(&self, node: Node) -> Result<DevicePointer<u8>> {
        let state = self.tree.lock()?;
        let raw = state.member("Graph::freed", self.number, node)?;
        let mut address: CUdeviceptr = 0;
        // SAFETY: the node is live, and `address` is a valid place.
        unsafe { call!(self.driver(), cuGraphMemFreeNodeGetParams(raw, &raw mut address)) }?;
        Ok(DevicePointer::from_raw(address))
    }
}

impl Device {
    /// Returns the memory that the device reserves for allocation nodes.
    ///
    /// CUDA: `cuDeviceGetGraphMemAttribute`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuDeviceGetGraphMemAttribute")]
    #[inline]
    pub fn graph_memory(&self) -> Result<GraphMemory> {
        let attribute = |attribute| -> Result<u64> {
            let mut value = 0_u64;
            let place: *mut c_void = (&raw mut value).cast();
            // SAFETY: `place` is valid for a number of 64 bits, which every attribute is.
            unsafe { call!(self.driver(), cuDeviceGetGraphMemAttribute(self.as_raw(), attribute, place)) }?;
            Ok(value)
        };
        Ok(GraphMemory {
            used: attribute(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)?,
            used_high: attribute(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)?,
            reserved: attribute(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_high: attribute(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)?,
        })
    }

    /// Begins anew to note the most that graphs have at once.
    ///
    /// CUDA: `cuDeviceSetGraphMemAttribute`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuDeviceSetGraphMemAttribute")]
    #[inline]
    pub fn reset_graph_memory_maxima(&self) -> Result<()> {
        let reset = |attribute| {
            let mut zero = 0_u64;
            let place: *mut c_void = (&raw mut zero).cast();
            // SAFETY: `place` holds a number of 64 bits, and 0 is the one value that a maximum takes.
            unsafe { call!(self.driver(), cuDeviceSetGraphMemAttribute(self.as_raw(), attribute, place)) }
        };
        reset(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)?;
        reset(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    }

    /// Gives back to the system what is kept for graphs and not allocated.
    ///
    /// CUDA: `cuDeviceGraphMemTrim`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuDeviceGraphMemTrim")]
    #[inline]
    pub fn trim_graph_memory(&self) -> Result<()> {
        // SAFETY: the device is one of this driver.
        unsafe { call!(self.driver(), cuDeviceGraphMemTrim(self.as_raw())) }
    }
}
