//! Batch memory operation nodes.

use curium_sys::{CUDA_BATCH_MEM_OP_NODE_PARAMS, CUstreamBatchMemOpParams};

use super::node::{MemoryOperationNode, Node};
use super::{Graph, NewNode};
use crate::call;
use crate::stream::memory_operation::MAX_BATCH;
use crate::{Context, Error, MemoryOperation, Result};

impl Graph {
    /// Adds a batch memory operation node that depends on the nodes in `after`. It performs the
    /// operations in order.
    ///
    /// CUDA: `cuGraphAddBatchMemOpNode`.
    ///
    /// # Safety
    ///
    /// - The safety requirements of the corresponding [`Stream`](crate::Stream) method hold for
    ///   each operation.
    /// - The memory outlives every executable graph instantiated from the graph, and its launches.
    ///
    /// # Errors
    ///
    /// An argument error for more than 256 operations, or if a node in `after` belongs to another
    /// graph or was removed; `CUDA_ERROR_NOT_SUPPORTED` if the device does not support an
    /// operation.
    #[doc(alias = "cuGraphAddBatchMemOpNode")]
    pub unsafe fn add_memory_operations(
        &mut self,
        after: &[Node],
        operations: &[MemoryOperation],
    ) -> Result<MemoryOperationNode> {
        let mut values = raw_operations(operations, "Graph::add_memory_operations")?;
        let params = params(self.context(), &mut values);
        let added = self.add("Graph::add_memory_operations", after, None, |driver, arguments| {
            let NewNode {
                node,
                graph,
                after,
                count,
            } = arguments;
            // SAFETY: the graph, the nodes and the context are live, and the caller is responsible
            // for the addresses.
            let added =
                unsafe { call!(driver, cuGraphAddBatchMemOpNode(node, graph, after, count, &raw const params) creates arguments.created()) };
            added.map_err(|error| error.about(format!("{} operations", params.count)))
        });
        added.map(MemoryOperationNode)
    }

    /// Sets the operations of a node. Existing executable graphs are not affected.
    ///
    /// CUDA: `cuGraphBatchMemOpNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_memory_operations`].
    ///
    /// # Errors
    ///
    /// As for [`Graph::add_memory_operations`].
    #[doc(alias = "cuGraphBatchMemOpNodeSetParams")]
    pub unsafe fn set_memory_operations(
        &mut self,
        node: MemoryOperationNode,
        operations: &[MemoryOperation],
    ) -> Result<()> {
        let mut values = raw_operations(operations, "Graph::set_memory_operations")?;
        let params = params(self.context(), &mut values);
        let state = self.tree.lock()?;
        let node = state.member("Graph::set_memory_operations", self.number, *node)?;
        // SAFETY: the node is live, and the caller is responsible for the addresses.
        unsafe {
            call!(
                self.driver(),
                cuGraphBatchMemOpNodeSetParams(node, &raw const params)
            )
        }
    }

    /// Returns the number of operations of a batch memory operation node.
    ///
    /// CUDA: `cuGraphBatchMemOpNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphBatchMemOpNodeGetParams")]
    pub fn memory_operation_count(&self, node: MemoryOperationNode) -> Result<usize> {
        let state = self.tree.lock()?;
        let node = state.member("Graph::memory_operation_count", self.number, *node)?;
        let mut params = CUDA_BATCH_MEM_OP_NODE_PARAMS::default();
        // SAFETY: the node is live, and `params` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphBatchMemOpNodeGetParams(node, &raw mut params)
            )
        }?;
        Ok(params.count as usize)
    }
}

/// Converts the operations to raw values.
pub(super) fn raw_operations(
    operations: &[MemoryOperation],
    operation: &'static str,
) -> Result<Vec<CUstreamBatchMemOpParams>> {
    if operations.len() > MAX_BATCH {
        let reason = format!(
            "too many operations ({}, at most {MAX_BATCH})",
            operations.len()
        );
        return Err(Error::argument(operation, reason));
    }
    Ok(operations
        .iter()
        .map(|operation| operation.as_raw())
        .collect())
}

/// Returns the driver's parameters of a node that performs `operations`, which they point to.
pub(super) fn params(
    context: &Context,
    operations: &mut [CUstreamBatchMemOpParams],
) -> CUDA_BATCH_MEM_OP_NODE_PARAMS {
    CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: context.as_raw(),
        count: operations.len() as u32,
        paramArray: operations.as_mut_ptr(),
        flags: 0,
    }
}
