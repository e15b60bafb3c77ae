//! Conditional nodes.

use std::sync::Arc;

use curium_sys::{
    CU_GRAPH_COND_ASSIGN_DEFAULT, CUDA_CONDITIONAL_NODE_PARAMS, CUgraphConditionalHandle,
    CUgraphConditionalNodeType, CUgraphNodeParams, CUgraphNodeType,
};

use super::Graph;
use super::node::Node;
use crate::call;
use crate::{ByValue, Error, Result};

/// A handle of the value that a conditional node evaluates. Kernels of the graph receive it as a
/// by-value parameter and set it with `cudaGraphSetConditional` of the CUDA device runtime.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(transparent)]
pub struct Condition(CUgraphConditionalHandle);

// SAFETY: kernels declare the handle as a 64-bit integer, and it contains no reference.
unsafe impl ByValue for Condition {}

/// The kind of a conditional node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ConditionalKind {
    /// Runs its body once if the value is not 0.
    If,
    /// Runs its first body if the value is not 0, and its second body otherwise. Since 12.8.
    IfElse,
    /// Runs its body repeatedly until the value is 0.
    While,
    /// Runs the body whose index equals the value, and none if the value is out of range. Contains
    /// the number of bodies. Since 12.8.
    Switch(u32),
}

/// A conditional node and its body graphs.
#[derive(Debug)]
pub struct ConditionalNode {
    node: Node,
    /// The body graphs, initially empty. They may contain kernel, copy, fill, host, child graph and
    /// conditional nodes, and work that is [captured](Graph::capture_into) into them. They are
    /// destroyed with the node.
    pub bodies: Vec<Graph>,
}

impl Condition {
    /// Returns the raw handle.
    #[must_use]
    pub fn as_raw(self) -> CUgraphConditionalHandle {
        self.0
    }
}

impl ConditionalKind {
    const fn to_raw(self) -> (CUgraphConditionalNodeType, u32) {
        match self {
            Self::If => (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF, 1),
            Self::IfElse => (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF, 2),
            Self::While => (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE, 1),
            Self::Switch(count) => (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH, count),
        }
    }
}

impl ConditionalNode {
    /// Returns the node.
    #[must_use]
    pub fn node(&self) -> Node {
        self.node
    }
}

impl Graph {
    /// Creates a conditional handle for one conditional node of this graph. The value is set to
    /// `default` at the start of each launch; without a `default` it keeps the value that kernels
    /// set.
    ///
    /// Requires a driver for CUDA 12.3. CUDA: `cuGraphConditionalHandleCreate`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver. Instantiation fails if no conditional node uses the handle.
    #[doc(alias = "cuGraphConditionalHandleCreate")]
    #[doc(alias = "cudaGraphConditionalHandleCreate")]
    pub fn condition(&mut self, default: Option<u32>) -> Result<Condition> {
        let state = self.tree.lock()?;
        let graph = state.graph("Graph::condition", self.number)?;
        let mut handle = 0;
        let context = self.context().as_raw();
        let flags = if default.is_some() {
            CU_GRAPH_COND_ASSIGN_DEFAULT
        } else {
            0
        };
        let value = default.unwrap_or_default();
        // The handle is a number that may be 0; only the result marks a failure.
        // SAFETY: the graph and the context are live, and `handle` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphConditionalHandleCreate(&raw mut handle, graph, context, value, flags)
            )
        }?;
        Ok(Condition(handle))
    }

    /// Adds a conditional node that depends on the nodes in `after`. Its body graphs are part of
    /// this graph; add nodes to them to fill them.
    ///
    /// Requires a driver for CUDA 12.3. CUDA: `cuGraphAddNode_v3`, `cuGraphAddNode_v2`.
    ///
    /// # Errors
    ///
    /// An argument error if a node in `after` belongs to another graph or was removed;
    /// `CUDA_ERROR_INVALID_VALUE` if the condition belongs to another graph or is used by another
    /// node.
    #[doc(alias = "CU_GRAPH_NODE_TYPE_CONDITIONAL")]
    pub fn add_conditional(
        &mut self,
        after: &[Node],
        condition: Condition,
        kind: ConditionalKind,
    ) -> Result<ConditionalNode> {
        let operation = "Graph::add_conditional";
        let ((type_, size), ctx) = (kind.to_raw(), self.context().as_raw());
        let mut params = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            ..CUgraphNodeParams::default()
        };
        let bodies = std::ptr::null_mut();
        params.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
            handle: condition.0,
            type_,
            size,
            phGraph_out: bodies,
            ctx,
        };
        let after: Vec<_> = after
            .iter()
            .map(|node| (*node, super::edge::EdgeData::new()))
            .collect();
        // One lock until the bodies are registered: another handle of the graph could remove the
        // node.
        let mut state = self.tree.lock()?;
        // SAFETY: the parameters are those of a conditional node, and everything that they refer to
        // is live.
        let node = unsafe { self.add_described(&mut state, operation, &after, &mut params) }?;
        // SAFETY: the parameters are still those of a conditional node.
        let bodies = unsafe { params.__bindgen_anon_1.conditional }.phGraph_out;
        if bodies.is_null() {
            return Err(Error::argument(
                operation,
                "the driver returned no body graphs",
            ));
        }
        // SAFETY: the driver has written a pointer to the requested number of graphs, which live as
        // long as the node.
        let bodies = unsafe { std::slice::from_raw_parts(bodies, size as usize) };
        Ok(ConditionalNode {
            node,
            bodies: bodies
                .iter()
                .map(|raw| Self::in_tree(Arc::clone(&self.tree), state.add_subgraph(node, *raw)))
                .collect(),
        })
    }
}
