//! Nodes of any kind, as raw parameters.

use curium_sys::{CUgraphEdgeData, CUgraphNodeParams, Function};

use super::edge::EdgeData;
use super::node::Node;
use super::tree::State;
use super::{Graph, NewNode};
use crate::Result;
use crate::call;

impl Graph {
    /// Adds a node of any kind from raw parameters, with the given dependencies. For kinds of nodes
    /// without a dedicated method. The driver writes its results to `params`.
    ///
    /// Requires a driver for CUDA 12.2. CUDA: `cuGraphAddNode_v3`, `cuGraphAddNode_v2` before 13.4,
    /// `cuGraphAddNode` before 12.3.
    ///
    /// # Safety
    ///
    /// - Everything that `params` refers to is live, belongs to this driver, and outlives
    ///   everything created from the graph.
    /// - The safety requirements of the method that adds nodes of this kind hold, such as
    ///   [`Graph::add_kernel`].
    /// - Kernels that may start before a dependency has completed synchronize their conflicting
    ///   accesses themselves.
    ///
    /// # Errors
    ///
    /// An argument error if a node in `after` belongs to another graph or was removed; an error
    /// returned by the driver for invalid parameters.
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddNode")]
    pub unsafe fn add_raw(
        &mut self,
        after: &[(Node, EdgeData)],
        params: &mut CUgraphNodeParams,
    ) -> Result<Node> {
        // SAFETY: the caller is responsible for the parameters and the edges.
        unsafe { self.add_described(&mut *self.tree.lock()?, "Graph::add_raw", after, params) }
    }

    /// Sets the raw parameters of a node of any kind. Existing executable graphs are not affected.
    ///
    /// Requires a driver for CUDA 12.2. CUDA: `cuGraphNodeSetParams_v2`, `cuGraphNodeSetParams`
    /// before 13.4.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_raw`].
    ///
    /// # Errors
    ///
    /// An argument error if the node belongs to another graph or was removed;
    /// `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[doc(alias = "cuGraphNodeSetParams")]
    #[doc(alias = "cudaGraphNodeSetParams")]
    pub unsafe fn set_raw(&mut self, node: Node, params: &mut CUgraphNodeParams) -> Result<()> {
        let driver = self.driver();
        let state = self.tree.lock()?;
        let raw = state.member("Graph::set_raw", self.number, node)?;
        self.context().entered(|_| {
            if driver.has(Function::cuGraphNodeSetParams_v2) {
                // SAFETY: the node is live, and the caller is responsible for the parameters.
                return unsafe { call!(driver, cuGraphNodeSetParams_v2(raw, params)) };
            }
            // SAFETY: the node is live, and the caller is responsible for the parameters.
            unsafe { call!(driver, cuGraphNodeSetParams(raw, params)) }
        })
    }

    /// Returns the raw parameters of a node of any kind. Memory that they point to belongs to the
    /// node and must not be modified.
    ///
    /// Requires a driver for CUDA 13.2. CUDA: `cuGraphNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphNodeGetParams")]
    pub fn raw_params(&self, node: Node) -> Result<CUgraphNodeParams> {
        let state = self.tree.lock()?;
        let raw = state.member("Graph::raw_params", self.number, node)?;
        let mut params = CUgraphNodeParams::default();
        // SAFETY: the node is live, and `params` is valid for writes.
        unsafe { call!(self.driver(), cuGraphNodeGetParams(raw, &raw mut params)) }?;
        Ok(params)
    }

    /// Adds the node that `params` describes.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_raw`].
    pub(super) unsafe fn add_described(
        &self,
        state: &mut State,
        operation: &'static str,
        after: &[(Node, EdgeData)],
        params: &mut CUgraphNodeParams,
    ) -> Result<Node> {
        let (nodes, data): (Vec<_>, Vec<CUgraphEdgeData>) = after
            .iter()
            .map(|(node, data)| (*node, data.to_raw()))
            .unzip();
        let is_plain = after.iter().all(|(_, data)| *data == EdgeData::new());
        let context = self.context().clone();
        let data = if data.is_empty() {
            std::ptr::null()
        } else {
            data.as_ptr()
        };
        state.add_node(self.driver(), self.number, operation, &nodes, None, |driver, arguments| {
            let NewNode {
                node,
                graph,
                after,
                count,
            } = arguments;
            context.entered(|_| {
                if driver.has(Function::cuGraphAddNode_v3) {
                    // SAFETY: the graph and the nodes are live, and the caller is responsible for
                    // the parameters and the edges.
                    return unsafe {
                        call!(driver, cuGraphAddNode_v3(node, graph, after, data, count, params) creates arguments.created())
                    };
                }
                if is_plain && !driver.has(Function::cuGraphAddNode_v2) {
                    // SAFETY: the graph and the nodes are live, and the caller is responsible for
                    // the parameters and the edges.
                    return unsafe {
                        call!(driver, cuGraphAddNode(node, graph, after, count, params) creates arguments.created())
                    };
                }
                // SAFETY: the graph and the nodes are live, and the caller is responsible for the
                // parameters and the edges.
                unsafe {
                    call!(driver, cuGraphAddNode_v2(node, graph, after, data, count, params) creates arguments.created())
                }
            })
        })
    }
}
