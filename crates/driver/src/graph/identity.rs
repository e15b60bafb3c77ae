//! Identifiers of graphs and nodes, and DOT output.

use std::ffi::CString;
use std::path::Path;

use bitflags::bitflags;
use curium_sys::CUgraphDebugDot_flags;

use super::Graph;
use super::exec::GraphExec;
use super::node::Node;
use crate::Result;
use crate::base::c_string::c_path;
use crate::call;

bitflags! {
    /// The contents of the DOT output.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct DotFlags: u32 {
        /// Everything.
        const VERBOSE = CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE.0;
        /// Kernels and launch configurations of kernel nodes.
        const KERNELS = CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS.0;
        /// Operands of memory copy nodes.
        const COPIES = CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS.0;
        /// Operands of memset nodes.
        const FILLS = CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS.0;
        /// Handles of nodes and kernels.
        const HANDLES = CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES.0;
        /// Flags defined by newer drivers.
        const _ = !0;
    }
}

impl Graph {
    /// Returns the driver's identifier of this graph, which is unique in the process.
    ///
    /// Requires a driver for CUDA 13.1. CUDA: `cuGraphGetId`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuGraphGetId")]
    pub fn id(&self) -> Result<u32> {
        let state = self.tree.lock()?;
        let graph = state.graph("Graph::id", self.number)?;
        let mut id = 0;
        // SAFETY: the graph is live, and `id` is valid for writes.
        unsafe { call!(self.driver(), cuGraphGetId(graph, &raw mut id)) }?;
        Ok(id)
    }

    /// Returns the driver's identifier of a node within this graph.
    ///
    /// Requires a driver for CUDA 13.1. CUDA: `cuGraphNodeGetLocalId`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphNodeGetLocalId")]
    pub fn local_id(&self, node: Node) -> Result<u32> {
        let state = self.tree.lock()?;
        let node = state.member("Graph::local_id", self.number, node)?;
        let mut id = 0;
        // SAFETY: the node is live, and `id` is valid for writes.
        unsafe { call!(self.driver(), cuGraphNodeGetLocalId(node, &raw mut id)) }?;
        Ok(id)
    }

    /// Returns the identifier of a node in profilers.
    ///
    /// Requires a driver for CUDA 13.1. CUDA: `cuGraphNodeGetToolsId`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphNodeGetToolsId")]
    pub fn tools_id(&self, node: Node) -> Result<u64> {
        let state = self.tree.lock()?;
        let node = state.member("Graph::tools_id", self.number, node)?;
        let mut id = 0;
        // SAFETY: the node is live, and `id` is valid for writes.
        unsafe { call!(self.driver(), cuGraphNodeGetToolsId(node, &raw mut id)) }?;
        Ok(id)
    }

    /// Returns `true` if a node belongs to this graph itself, and not to a child graph.
    ///
    /// Requires a driver for CUDA 13.1. CUDA: `cuGraphNodeGetContainingGraph`.
    ///
    /// # Errors
    ///
    /// An argument error if the node belongs neither to this graph nor to a child graph, or was
    /// removed.
    #[doc(alias = "cuGraphNodeGetContainingGraph")]
    pub fn contains(&self, node: Node) -> Result<bool> {
        let state = self.tree.lock()?;
        let this = state.graph("Graph::contains", self.number)?;
        let node = state.node("Graph::contains", node)?;
        let mut graph = std::ptr::null_mut();
        // SAFETY: the node is live, and `graph` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphNodeGetContainingGraph(node, &raw mut graph)
            )
        }?;
        Ok(graph == this)
    }

    /// Writes the graph to the file at `path` in the DOT language of Graphviz.
    ///
    /// CUDA: `cuGraphDebugDotPrint`.
    ///
    /// # Errors
    ///
    /// An argument error if the path contains a NUL; `CUDA_ERROR_OPERATING_SYSTEM` if the file
    /// cannot be written.
    #[doc(alias = "cuGraphDebugDotPrint")]
    #[doc(alias = "cudaGraphDebugDotPrint")]
    pub fn write_dot(&self, path: impl AsRef<Path>, flags: DotFlags) -> Result<()> {
        let name: CString = c_path("Graph::write_dot", path.as_ref())?;
        let state = self.tree.lock()?;
        let graph = state.graph("Graph::write_dot", self.number)?;
        // SAFETY: the graph is live, and the name is NUL-terminated.
        let written = unsafe {
            call!(
                self.driver(),
                cuGraphDebugDotPrint(graph, name.as_ptr(), flags.bits())
            )
        };
        written.map_err(|error| error.about(path.as_ref().display().to_string()))
    }
}

impl GraphExec {
    /// Returns the driver's identifier of this executable graph, which is unique in the process.
    ///
    /// Requires a driver for CUDA 13.1. CUDA: `cuGraphExecGetId`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuGraphExecGetId")]
    pub fn id(&self) -> Result<u32> {
        let mut id = 0;
        // SAFETY: the executable graph is live, and `id` is valid for writes.
        unsafe { call!(self.driver(), cuGraphExecGetId(self.as_raw(), &raw mut id)) }?;
        Ok(id)
    }
}
