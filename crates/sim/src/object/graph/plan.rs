//! The steps of an executable: a graph's nodes with their data, in topological order.

use std::sync::Arc;

use curium_sys::CUresult;

use crate::handle::Id;
use crate::lock::Mutex;
use crate::object::graph::Node;
use crate::object::graph::condition::Conditions;
use crate::object::graph::content::Content;
use crate::result::Result;

/// The steps of a graph, each after its dependencies.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
}

/// One node of the graph that was instantiated.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) node: Id<Node>,
    /// The number of the node in its graph.
    pub(crate) number: u32,
    pub(crate) content: Content,
    /// The dependencies of the step.
    pub(crate) after: Vec<usize>,
    pub(crate) is_enabled: bool,
    /// The plans of the node's child graphs.
    pub(crate) parts: Vec<Plan>,
}

/// The conditional values while an executable runs.
pub(crate) type SharedConditions = Arc<Mutex<Conditions>>;

impl Plan {
    /// Returns `true` if a node allocates or frees memory.
    pub(crate) fn allocates(&self) -> bool {
        self.steps.iter().any(|step| step.content.is_memory())
    }

    /// Returns the step of a node, including in child plans.
    pub(crate) fn step_mut(&mut self, node: Id<Node>) -> Option<&mut Step> {
        let position = self.steps.iter().position(|step| step.node == node);
        match position {
            Some(position) => self.steps.get_mut(position),
            None => self
                .steps
                .iter_mut()
                .flat_map(|step| &mut step.parts)
                .find_map(|part| part.step_mut(node)),
        }
    }
}

impl Step {
    /// Checks that the node can be enabled and disabled.
    pub(crate) fn require_switchable(&self) -> Result {
        match self.content {
            Content::Kernel(_) | Content::Copy(_) | Content::Set(_) | Content::Library(_) => Ok(()),
            _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    }
}
