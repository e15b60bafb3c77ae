//! Whole-graph update of executable graphs.

use curium_sys::{CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo, CUgraphNode, CUresult, Function};

use super::instantiate::describe;
use super::{Graph, GraphExec, Node};
use crate::call;
use crate::{Driver, Error, Result};

/// The outcome of [`GraphExec::update`].
#[derive(Debug)]
#[must_use = "an executable that a graph does not fit is not changed"]
#[non_exhaustive]
pub enum GraphUpdate {
    /// The executable does what the graph describes from the next launch on.
    Done,
    /// The graph does not fit the executable, and has to be instantiated.
    Failed(Box<UpdateFailure>),
}

/// Why a graph does not fit an executable.
#[derive(Debug)]
#[non_exhaustive]
pub struct UpdateFailure {
    /// The reason.
    pub reason: UpdateFailureReason,
    /// The node of the graph that does not fit; none if it is one within a node, or if the driver names none.
    pub node: Option<Node>,
    /// The driver's error, which names the node in words.
    pub error: Error,
}

/// The reason why a graph does not fit an executable graph.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum UpdateFailureReason {
    /// There are other nodes, or they come after others.
    Topology,
    /// A node is of another kind.
    NodeKind,
    /// A node runs another kernel, and this driver cannot change that.
    Kernel,
    /// A node runs another kernel that cannot take the place of the one before.
    UnsupportedKernel,
    /// A node has parameters that cannot be changed like this.
    Parameters,
    /// A node has attributes that cannot be changed.
    Attributes,
    /// Something of a node cannot be changed at all.
    NotSupported,
    /// The driver does not say, or a newer driver says something else: its number.
    Unknown(u32),
}

impl GraphExec {
    /// Takes over the parameters of every node from `graph`, which has the same nodes in the same order. Pending launches are not
    /// concerned.
    ///
    /// Nodes that were changed one by one are what they are in `graph` afterwards, and are still changed by the names that they have in the
    /// graph that was instantiated.
    ///
    /// CUDA: `cuGraphExecUpdate_v2`, and `cuGraphExecUpdate` before 12.0.
    ///
    /// # Errors
    ///
    /// An argument error if the graph is of another context or driver; whatever else the driver returns. That the graph does not fit is no
    /// error.
    #[doc(alias = "cuGraphExecUpdate")]
    #[inline]
    pub fn update(&mut self, graph: &Graph) -> Result<GraphUpdate> {
        let operation = "GraphExec::update";
        self.driver().expect_same(graph.driver(), operation)?;
        if self.context().as_raw() != graph.context().as_raw() {
            return Err(Error::argument(operation, "the graph is of another context than the executable"));
        }
        let state = graph.tree.lock()?;
        let raw = state.graph(operation, graph.number)?;
        let mut info = CUgraphExecUpdateResultInfo::default();
        let updated = self.context().entered(|driver| {
            if driver.has(Function::cuGraphExecUpdate_v2) {
                // SAFETY: the executable and the graph are live, `info` is a valid place, and this thread has both.
                return unsafe { call!(driver, cuGraphExecUpdate_v2(self.as_raw(), raw, &raw mut info)) };
            }
            let (node, result) = (&raw mut info.errorNode, &raw mut info.result);
            // SAFETY: as above.
            unsafe { call!(driver, cuGraphExecUpdate(self.as_raw(), raw, node, result)) }
        });
        let kept = state.kept();
        match updated {
            Ok(()) => {
                drop(state);
                self.keep_all(kept);
                Ok(GraphUpdate::Done)
            }
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) => {
                let node = state.find(info.errorNode);
                let error = name_node(error, graph.driver(), info.errorNode, &state);
                drop(state);
                // The driver does not promise to have changed nothing.
                self.keep_also(&kept);
                let reason = UpdateFailureReason::from_raw(info.result);
                Ok(GraphUpdate::Failed(Box::new(UpdateFailure { reason, node, error })))
            }
            Err(error) => Err(error),
        }
    }
}

impl GraphUpdate {
    /// Returns `true` if the executable does what the graph describes.
    #[must_use]
    #[inline]
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }
}

impl UpdateFailureReason {
    #[inline]
    const fn from_raw(raw: CUgraphExecUpdateResult) -> Self {
        match raw {
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED => Self::Topology,
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED => Self::NodeKind,
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED => Self::Kernel,
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE => Self::UnsupportedKernel,
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED => Self::Parameters,
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED => Self::Attributes,
            CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED => Self::NotSupported,
            other => Self::Unknown(other.0),
        }
    }
}

/// Adds to the error of an update which node it is about.
#[cold]
#[inline]
fn name_node(error: Error, driver: &Driver, node: CUgraphNode, state: &super::tree::State) -> Error {
    if node.is_null() {
        return error;
    }
    error.about(describe(driver, state, node))
}
