//! Allocation and free nodes, and the memory that a device reserves for them.

use std::ffi::c_void;

use curium_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdeviceptr, CUgraphMem_attribute, CUmemAllocationType,
    CUmemLocationType,
};

use super::node::{Found, FoundNode};
use super::node::{Node, TypedNode};
use super::{Graph, NewNode};
use crate::call;
use crate::{Device, DevicePointer, Result};

/// A memory allocation node and the address of its memory.
///
/// The address is fixed when the node is added, and is the same in every launch. The memory is
/// allocated when the node runs. It stays allocated until the node that frees it runs, or until the
/// next launch if the graph was instantiated with
/// [`AUTO_FREE_ON_LAUNCH`](crate::InstantiateFlags::AUTO_FREE_ON_LAUNCH).
#[derive(Clone, Copy, Debug)]
pub struct AllocationNode {
    node: Node,
    address: DevicePointer<u8>,
    bytes: usize,
}

/// The memory that a device uses and reserves for graph allocations, in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct GraphMemory {
    /// The bytes in use by graphs.
    pub used: u64,
    /// The high-water mark of `used`.
    pub used_high: u64,
    /// The bytes reserved for graphs, including those in use.
    pub reserved: u64,
    /// The high-water mark of `reserved`.
    pub reserved_high: u64,
}

impl AllocationNode {
    /// Returns the address of the memory.
    #[must_use]
    pub fn address(&self) -> DevicePointer<u8> {
        self.address
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes
    }
}

impl super::node::sealed::Sealed for AllocationNode {}

impl TypedNode for AllocationNode {}

impl FoundNode for AllocationNode {
    fn at(&self, found: Found) -> Self {
        Self {
            node: found.0,
            ..*self
        }
    }
}

impl std::ops::Deref for AllocationNode {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl From<AllocationNode> for Node {
    fn from(node: AllocationNode) -> Self {
        node.node
    }
}

impl Graph {
    /// Adds a memory allocation node that depends on the nodes in `after`. It allocates `bytes`
    /// bytes on the context's device.
    ///
    /// Such a node cannot be removed, and its graph can be neither cloned nor added to another
    /// graph.
    ///
    /// CUDA: `cuGraphAddMemAllocNode`.
    ///
    /// # Errors
    ///
    /// An argument error if a node in `after` belongs to another graph or was removed;
    /// `CUDA_ERROR_INVALID_VALUE` for 0 bytes.
    #[doc(alias = "cuGraphAddMemAllocNode")]
    #[doc(alias = "cudaGraphAddMemAllocNode")]
    pub fn add_allocation(&mut self, after: &[Node], bytes: usize) -> Result<AllocationNode> {
        let context = self.context().clone();
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS {
            bytesize: bytes,
            ..CUDA_MEM_ALLOC_NODE_PARAMS::default()
        };
        params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        params.poolProps.location.__bindgen_anon_1.id = context.device().as_raw();
        let node = self.add("Graph::add_allocation", after, None, |_, arguments| {
            let NewNode {
                node,
                graph,
                after,
                count,
            } = arguments;
            let added = context.entered(|driver| {
                // SAFETY: the graph and the nodes are live, the context is current, and `params`
                // receives the address.
                unsafe {
                    call!(driver, cuGraphAddMemAllocNode(node, graph, after, count, &raw mut params) creates arguments.created())
                }
            });
            added.map_err(|error| error.about(format!("{bytes} bytes")))
        })?;
        Ok(AllocationNode {
            node,
            address: DevicePointer::from_raw(params.dptr),
            bytes,
        })
    }

    /// Adds a memory free node that depends on the nodes in `after`. It frees the memory of an
    /// allocation node of the same graph.
    ///
    /// CUDA: `cuGraphAddMemFreeNode`.
    ///
    /// # Safety
    ///
    /// The node depends on every node that uses the memory, and no other work uses the memory after
    /// a launch.
    ///
    /// # Errors
    ///
    /// An argument error if a node belongs to another graph or was removed;
    /// `CUDA_ERROR_INVALID_VALUE` if another node frees the memory.
    #[doc(alias = "cuGraphAddMemFreeNode")]
    #[doc(alias = "cudaGraphAddMemFreeNode")]
    pub unsafe fn add_free(&mut self, after: &[Node], allocation: &AllocationNode) -> Result<Node> {
        self.tree
            .lock()?
            .member("Graph::add_free", self.number, allocation.node)?;
        let address = allocation.address.as_raw();
        self.add("Graph::add_free", after, None, |driver, arguments| {
            let NewNode {
                node,
                graph,
                after,
                count,
            } = arguments;
            // SAFETY: the graph and the nodes are live, and the caller is responsible for the uses
            // of the memory.
            unsafe { call!(driver, cuGraphAddMemFreeNode(node, graph, after, count, address) creates arguments.created()) }
        })
    }

    /// Returns the address and the size in bytes of the memory that a memory allocation node
    /// allocates.
    ///
    /// CUDA: `cuGraphMemAllocNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed; `CUDA_ERROR_INVALID_VALUE`
    /// if it does not allocate.
    #[doc(alias = "cuGraphMemAllocNodeGetParams")]
    #[doc(alias = "cudaGraphMemAllocNodeGetParams")]
    pub fn allocation(&self, node: Node) -> Result<AllocationNode> {
        let state = self.tree.lock()?;
        let raw = state.member("Graph::allocation", self.number, node)?;
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS::default();
        // SAFETY: the node is live, and `params` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphMemAllocNodeGetParams(raw, &raw mut params)
            )
        }?;
        Ok(AllocationNode {
            node,
            address: DevicePointer::from_raw(params.dptr),
            bytes: params.bytesize,
        })
    }

    /// Returns the address of the memory that a memory free node frees.
    ///
    /// CUDA: `cuGraphMemFreeNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed; `CUDA_ERROR_INVALID_VALUE`
    /// if it does not free.
    #[doc(alias = "cuGraphMemFreeNodeGetParams")]
    #[doc(alias = "cudaGraphMemFreeNodeGetParams")]
    pub fn freed(&self, node: Node) -> Result<DevicePointer<u8>> {
        let state = self.tree.lock()?;
        let raw = state.member("Graph::freed", self.number, node)?;
        let mut address: CUdeviceptr = 0;
        // SAFETY: the node is live, and `address` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphMemFreeNodeGetParams(raw, &raw mut address)
            )
        }?;
        Ok(DevicePointer::from_raw(address))
    }
}

impl Device {
    /// Returns the memory that the device uses and reserves for graph allocations.
    ///
    /// CUDA: `cuDeviceGetGraphMemAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceGetGraphMemAttribute")]
    #[doc(alias = "cudaDeviceGetGraphMemAttribute")]
    pub fn graph_memory(&self) -> Result<GraphMemory> {
        use CUgraphMem_attribute as Attribute;
        Ok(GraphMemory {
            used: self.graph_memory_attribute(Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)?,
            used_high: self.graph_memory_attribute(Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)?,
            reserved: self
                .graph_memory_attribute(Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_high: self
                .graph_memory_attribute(Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)?,
        })
    }

    /// Resets the high-water marks of [`GraphMemory`] to the current values.
    ///
    /// CUDA: `cuDeviceSetGraphMemAttribute`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceSetGraphMemAttribute")]
    #[doc(alias = "cudaDeviceSetGraphMemAttribute")]
    pub fn reset_graph_memory_maxima(&self) -> Result<()> {
        for attribute in [
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
            CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
        ] {
            let mut zero = 0_u64;
            let value: *mut c_void = (&raw mut zero).cast();
            // SAFETY: `value` points to a 64-bit integer, and 0 is the only value that a high-water
            // mark can be set to.
            unsafe {
                call!(
                    self.driver(),
                    cuDeviceSetGraphMemAttribute(self.as_raw(), attribute, value)
                )
            }?;
        }
        Ok(())
    }

    fn graph_memory_attribute(&self, attribute: CUgraphMem_attribute) -> Result<u64> {
        let mut value = 0_u64;
        // SAFETY: every attribute is a 64-bit integer, for which `value` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuDeviceGetGraphMemAttribute(self.as_raw(), attribute, (&raw mut value).cast())
            )
        }?;
        Ok(value)
    }

    /// Releases memory that is reserved for graph allocations and not in use back to the system.
    ///
    /// CUDA: `cuDeviceGraphMemTrim`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuDeviceGraphMemTrim")]
    #[doc(alias = "cudaDeviceGraphMemTrim")]
    pub fn trim_graph_memory(&self) -> Result<()> {
        // SAFETY: the device belongs to this driver.
        unsafe { call!(self.driver(), cuDeviceGraphMemTrim(self.as_raw())) }
    }
}
