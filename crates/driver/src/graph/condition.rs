//! Conditional nodes.

use std::sync::Arc;

use curium_sys::{
    CU_GRAPH_COND_ASSIGN_DEFAULT, CUDA_CONDITIONAL_NODE_PARAMS, CUgraphConditionalHandle, CUgraphConditionalNodeType,
    CUgraphNodeParams, CUgraphNodeType,
};

use super::{Graph, Node};
use crate::call;
use crate::{ByValue, Error, Result};

/// A value that a conditional node looks at when it runs. Kernels of the graph set it with `cudaGraphSetConditional` of CUDA's device
/// runtime; they take it as a parameter by value.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(transparent)]
pub struct Condition(CUgraphConditionalHandle);

// SAFETY: kernels declare the handle as a number of 64 bits, and it holds no reference.
unsafe impl ByValue for Condition {}

/// The kind of a conditional node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ConditionalKind {
    /// Runs its graph once unless the value is 0.
    If,
    /// Runs its first graph unless the value is 0, and its second if it is. Since 12.8.
    IfElse,
    /// Runs its graph again and again until the value is 0.
    While,
    /// Runs the graph with the number that is the value, if it has so many. Since 12.8.
    Switch(u32),
}

/// A conditional node, and the graphs within it.
#[derive(Debug)]
pub struct ConditionalNode {
    node: Node,
    /// The graphs that it runs, without nodes at first. Their nodes are kernels, copies, fills, host functions, children and conditional
    /// nodes, or what is [captured](Graph::capture_into) into them; they are gone when the node is removed.
    pub bodies: Vec<Graph>,
}

impl Condition {
    /// Returns the driver's handle.
    #[must_use]
    #[inline]
    pub fn as_raw(self) -> CUgraphConditionalHandle {
        self.0
    }
}

impl ConditionalKind {
    #[inline]
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
    #[inline]
    pub fn node(&self) -> Node {
        self.node
    }
}

impl Graph {
    /// Makes a value for one conditional node of this graph to look at. With a `default` it has that whenever a launch begins; without
    /// one it keeps what kernels set.
    ///
    /// Needs a driver for CUDA 12.3. CUDA: `cuGraphConditionalHandleCreate`.
    ///
    /// # Errors
    ///
    /// An error of the driver. A graph with a value that no node looks at cannot be instantiated.
    #[doc(alias = "cuGraphConditionalHandleCreate")]
    #[inline]
    pub fn condition(&mut self, default: Option<u32>) -> Result<Condition> {
        let state = self.tree.lock()?;
        let (graph, mut handle) = (state.graph("Graph::condition", self.number)?, 0);
        let (context, place) = (self.context().as_raw(), &raw mut handle);
        let flags = if default.is_some() { CU_GRAPH_COND_ASSIGN_DEFAULT } else { 0 };
        let value = default.unwrap_or_default();
        // The handle is a number that may be 0; only the result marks a failure.
        // SAFETY: the graph and the context are live, and `place` is valid.
        unsafe { call!(self.driver(), cuGraphConditionalHandleCreate(place, graph, context, value, flags)) }?;
        Ok(Condition(handle))
    }

    /// Adds a node behind `after` that runs other graphs as `condition` says. They are part of this one, and filled by adding to them.
    ///
    /// Needs a driver for CUDA 12.3. CUDA: `cuGraphAddNode_v3`, `cuGraphAddNode_v2`.
    ///
    /// # Errors
    ///
    /// An argument error if a node of `after` is in another graph or was removed; `CUDA_ERROR_INVALID_VALUE` if the condition is of another
    /// graph or another node looks at it.
    #[doc(alias = "CU_GRAPH_NODE_TYPE_CONDITIONAL")]
    #[inline]
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
        params.__bindgen_anon_1.conditional =
            CUDA_CONDITIONAL_NODE_PARAMS { handle: condition.0, type_, size, phGraph_out: bodies, ctx };
        let after: Vec<_> = after.iter().map(|node| (*node, super::EdgeData::new())).collect();
        // SAFETY: the description is that of a conditional node, and all that it names is live.
        let node = unsafe { self.add_described(operation, &after, &mut params) }?;
        // SAFETY: the description is still that of a conditional node.
        let bodies = unsafe { params.__bindgen_anon_1.conditional }.phGraph_out;
        if bodies.is_null() {
            return Err(Error::argument(operation, "the driver gave no graphs for the node"));
        }
        let mut state = self.tree.lock()?;
        let part = |index| {
            // SAFETY: the driver has written where it keeps as many graphs as were asked for, which live as long as the node.
            let place = unsafe { bodies.add(index) };
            // SAFETY: as above.
            let raw = unsafe { *place };
            Self::of(Arc::clone(&self.tree), state.add_part(node, raw))
        };
        Ok(ConditionalNode { node, bodies: (0..size as usize).map(part).collect() })
    }
}
