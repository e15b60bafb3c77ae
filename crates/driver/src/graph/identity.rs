//! Identifiers of graphs and nodes, and DOT pictures.

use std::ffi::CString;
use std::path::Path;

use bitflags::bitflags;
use curium_sys::CUgraphDebugDot_flags;

use super::{Graph, GraphExec, Node};
use crate::Result;
use crate::base::c_string::c_path;
use crate::call;

bitflags! {
    /// The contents of a DOT picture of a graph.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct DotFlags: u32 {
        /// All that there is to say.
        const VERBOSE = CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE.0;
        /// Kernels and launch sizes of kernel nodes.
        const KERNELS = CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS.0;
        /// Operands of copy nodes.
        const COPIES = CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS.0;
        /// Operands of memset nodes.
        const FILLS = CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS.0;
        /// The handles of nodes and kernels.
        const HANDLES = CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES.0;
        /// Flags of newer drivers.
        const _ = !0;
    }
}

impl Graph {
    /// Returns the driver's number of this graph, which no other graph of the process gets.
    ///
    /// Needs a driver for CUDA 13.1. CUDA: `cuGraphGetId`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuGraphGetId")]
    #[inline]
    pub fn id(&self) -> Result<u32> {
        let state = self.tree.lock()?;
        let (graph, mut id) = (state.graph("Graph::id", self.number)?, 0);
        // SAFETY: the graph is live, and `id` is a valid place.
        unsafe { call!(self.driver(), cuGraphGetId(graph, &raw mut id)) }?;
        Ok(id)
    }

    /// Returns the driver's number of a node within this graph.
    ///
    /// Needs a driver for CUDA 13.1. CUDA: `cuGraphNodeGetLocalId`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphNodeGetLocalId")]
    #[inline]
    pub fn local_id(&self, node: Node) -> Result<u32> {
        let state = self.tree.lock()?;
        let (node, mut id) = (state.member("Graph::local_id", self.number, node)?, 0);
        // SAFETY: the node is live, and `id` is a valid place.
        unsafe { call!(self.driver(), cuGraphNodeGetLocalId(node, &raw mut id)) }?;
        Ok(id)
    }

    /// Returns the number under which profilers show a node.
    ///
    /// Needs a driver for CUDA 13.1. CUDA: `cuGraphNodeGetToolsId`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphNodeGetToolsId")]
    #[inline]
    pub fn tools_id(&self, node: Node) -> Result<u64> {
        let state = self.tree.lock()?;
        let (node, mut id) = (state.member("Graph::tools_id", self.number, node)?, 0);
        // SAFETY: the node is live, and `id` is a valid place.
        unsafe { call!(self.driver(), cuGraphNodeGetToolsId(node, &raw mut id)) }?;
        Ok(id)
    }

    /// Returns `true` if the driver finds a node in this very graph.
    ///
    /// Needs a driver for CUDA 13.1. CUDA: `cuGraphNodeGetContainingGraph`.
    ///
    /// # Errors
    ///
    /// An argument error if the node has nothing to do with this graph or was removed.
    #[doc(alias = "cuGraphNodeGetContainingGraph")]
    #[inline]
    pub fn contains(&self, node: Node) -> Result<bool> {
        let state = self.tree.lock()?;
        let own = state.graph("Graph::contains", self.number)?;
        let (node, mut graph) = (state.node("Graph::contains", node)?, std::ptr::null_mut());
        // SAFETY: the node is live, and `graph` is a valid place.
        unsafe { call!(self.driver(), cuGraphNodeGetContainingGraph(node, &raw mut graph)) }?;
        Ok(graph == own)
    }

    /// Writes a picture of the graph, in the language of Graphviz, into the file at `path`.
    ///
    /// CUDA: `cuGraphDebugDotPrint`.
    ///
    /// # Errors
    ///
    /// An argument error for a path that C cannot read; `CUDA_ERROR_OPERATING_SYSTEM` if the file cannot be written.
    #[doc(alias = "cuGraphDebugDotPrint")]
    #[inline]
    pub fn write_dot(&self, path: impl AsRef<Path>, flags: DotFlags) -> Result<()> {
        let name: CString = c_path("Graph::write_dot", path.as_ref())?;
        let state = self.tree.lock()?;
        let graph = state.graph("Graph::write_dot", self.number)?;
        // SAFETY: the graph is live, and the name ends in a NUL.
        let written = unsafe { call!(self.driver(), cuGraphDebugDotPrint(graph, name.as_ptr(), flags.bits())) };
        written.map_err(|error| error.about(path.as_ref().display().to_string()))
    }
}

impl GraphExec {
    /// Returns the driver's number of this executable, which no other executable of the process gets.
    ///
    /// Needs a driver for CUDA 13.1. CUDA: `cuGraphExecGetId`.
    ///
    /// # Errors
    ///
    /// An error of the driver.
    #[doc(alias = "cuGraphExecGetId")]
    #[inline]
    pub fn id(&self) -> Result<u32> {
        let mut id = 0;
        // SAFETY: the executable is live, and `id` is a valid place.
        unsafe { call!(self.driver(), cuGraphExecGetId(self.as_raw(), &raw mut id)) }?;
        Ok(id)
    }
}
