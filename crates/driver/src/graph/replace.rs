//! Whole-graph update of executable graphs.

use curium_sys::{
    CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo, CUgraphNode, CUresult, Function,
};

use super::Graph;
use super::exec::GraphExec;
use super::instantiate::describe;
use super::node::Node;
use crate::call;
use crate::{Driver, Error, Result};

/// The outcome of [`GraphExec::update`].
#[derive(Debug)]
#[must_use = "the executable graph is unchanged if the update fails"]
#[non_exhaustive]
pub enum GraphUpdate {
    /// The executable graph was updated; subsequent launches run the work of the graph.
    Done,
    /// The graph does not match the executable graph, which must be instantiated again.
    Failed(Box<UpdateFailure>),
}

/// The reason why an update failed.
#[derive(Debug)]
#[non_exhaustive]
pub struct UpdateFailure {
    /// The class of the reason.
    pub reason: UpdateFailureReason,
    /// The node that does not match; `None` if it is in a child graph, or if the driver reports
    /// none.
    pub node: Option<Node>,
    /// The driver's error, which describes the node.
    pub error: Error,
}

/// The class of a failed update.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum UpdateFailureReason {
    /// The topology changed: the nodes or their dependencies differ.
    Topology,
    /// The type of a node changed.
    NodeKind,
    /// The kernel of a node changed, which this driver cannot update.
    Kernel,
    /// The kernel of a node changed in an unsupported way.
    UnsupportedKernel,
    /// The parameters of a node changed in an unsupported way.
    Parameters,
    /// The attributes of a node changed in an unsupported way.
    Attributes,
    /// A node cannot be updated at all.
    NotSupported,
    /// The driver reports no reason, or one that is not defined here. Contains the raw value.
    Unknown(u32),
}

impl GraphExec {
    /// Updates every node with the parameters in `graph`, which must have the same topology.
    /// Pending launches are not affected.
    ///
    /// Nodes that were updated individually get the parameters in `graph` too. They are still
    /// identified by the nodes of the original source graph.
    ///
    /// CUDA: `cuGraphExecUpdate_v2`, and `cuGraphExecUpdate` before 12.0.
    ///
    /// # Errors
    ///
    /// An argument error if the graph belongs to another context or driver, and any error returned
    /// by the driver. A graph that does not match is not an error; see [`GraphUpdate::Failed`].
    #[doc(alias = "cuGraphExecUpdate")]
    #[doc(alias = "cudaGraphExecUpdate")]
    pub fn update(&mut self, graph: &Graph) -> Result<GraphUpdate> {
        let operation = "GraphExec::update";
        self.driver().check_same(graph.driver(), operation)?;
        if self.context().as_raw() != graph.context().as_raw() {
            return Err(Error::argument(
                operation,
                "context mismatch (the graph and the executable graph)",
            ));
        }
        let state = graph.tree.lock()?;
        let raw = state.graph(operation, graph.number)?;
        let mut info = CUgraphExecUpdateResultInfo::default();
        let updated = self.context().entered(|driver| {
            if driver.has(Function::cuGraphExecUpdate_v2) {
                // SAFETY: the executable graph and the graph are live, `info` is valid for writes,
                // and this thread has exclusive access to both.
                return unsafe {
                    call!(
                        driver,
                        cuGraphExecUpdate_v2(self.as_raw(), raw, &raw mut info)
                    )
                };
            }
            let node = &raw mut info.errorNode;
            let result = &raw mut info.result;
            // SAFETY: the executable graph and the graph are live, `node` and `result` are valid
            // for writes, and this thread has exclusive access to both graphs.
            unsafe { call!(driver, cuGraphExecUpdate(self.as_raw(), raw, node, result)) }
        });
        let resources = state.resources();
        // After a failure the executable graph keeps both: the driver does not guarantee that
        // nothing was updated.
        match updated {
            Ok(()) => {
                drop(state);
                self.replace_resources(resources);
                Ok(GraphUpdate::Done)
            }
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) => {
                let node = state.find_node(info.errorNode);
                let error = name_node(error, graph.driver(), info.errorNode, &state);
                drop(state);
                self.add_resources(&resources);
                let reason = UpdateFailureReason::from_raw(info.result);
                Ok(GraphUpdate::Failed(Box::new(UpdateFailure {
                    reason,
                    node,
                    error,
                })))
            }
            Err(error) => {
                drop(state);
                self.add_resources(&resources);
                Err(error)
            }
        }
    }
}

impl GraphUpdate {
    /// Returns `true` if the executable graph was updated.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }
}

impl UpdateFailureReason {
    const fn from_raw(raw: CUgraphExecUpdateResult) -> Self {
        match raw {
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED => Self::Topology,
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED => Self::NodeKind,
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED => Self::Kernel,
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE => {
                Self::UnsupportedKernel
            }
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED => {
                Self::Parameters
            }
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED => {
                Self::Attributes
            }
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED => Self::NotSupported,
            other => Self::Unknown(other.0),
        }
    }
}

/// Adds the failing node to the error of an update.
#[cold]
fn name_node(
    error: Error,
    driver: &Driver,
    node: CUgraphNode,
    state: &super::tree::State,
) -> Error {
    if node.is_null() {
        return error;
    }
    error.about(describe(driver, state, node))
}
