//! Updates of executables.

use curium_sys::{CUgraphExecUpdateResult, CUresult};

use crate::handle::Id;
use crate::object::graph::Node;
use crate::object::graph::content::Content;
use crate::object::graph::plan::Plan;
use crate::result::Result;

/// The reason why a graph does not fit an executable.
pub(crate) struct UpdateFailure {
    pub(crate) why: CUgraphExecUpdateResult,
    pub(crate) node: Id<Node>,
    /// The source of the edge that the executable lacks.
    pub(crate) from: Option<Id<Node>>,
}

impl Plan {
    /// Replaces the contents by those of a plan of the same shape, or changes nothing.
    pub(crate) fn adopt(&mut self, other: &Self) -> std::result::Result<(), UpdateFailure> {
        self.check_update(other)?;
        self.take(other);
        Ok(())
    }

    fn check_update(&self, other: &Self) -> std::result::Result<(), UpdateFailure> {
        let changed = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        for (index, new) in other.steps.iter().enumerate() {
            let failure = |why, from| UpdateFailure {
                why,
                node: new.node,
                from,
            };
            let old = self
                .steps
                .get(index)
                .ok_or_else(|| failure(changed, None))?;
            if old.after != new.after {
                let added = new.after.iter().find(|index| !old.after.contains(index));
                return Err(failure(
                    changed,
                    added.map(|index| other.steps[*index].node),
                ));
            }
            old.content
                .check_update(&new.content)
                .map_err(|why| failure(why, None))?;
            old.parts
                .iter()
                .zip(&new.parts)
                .try_for_each(|(old, new)| old.check_update(new))?;
        }
        match self.steps.get(other.steps.len()) {
            Some(missing) => Err(UpdateFailure {
                why: changed,
                node: missing.node,
                from: None,
            }),
            None => Ok(()),
        }
    }

    fn take(&mut self, other: &Self) {
        for (old, new) in self.steps.iter_mut().zip(&other.steps) {
            old.content = new.content.clone();
            old.parts
                .iter_mut()
                .zip(&new.parts)
                .for_each(|(old, new)| old.take(new));
        }
    }
}

impl Content {
    /// Checks that this content can replace the content of a step.
    fn check_update(&self, new: &Self) -> std::result::Result<(), CUgraphExecUpdateResult> {
        if self.kind() != new.kind() {
            return Err(CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
        }
        match (self, new) {
            (Self::Kernel(old), Self::Kernel(new))
                if old.launch.context() != new.launch.context() =>
            {
                Err(CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE)
            }
            // The addresses of graph allocations are fixed at their creation.
            (Self::Allocate(old), Self::Allocate(new)) if old.address() != new.address() => {
                Err(CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED)
            }
            (Self::Condition(old), Self::Condition(new)) if !old.has_same_shape(new) => {
                Err(CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED)
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn failure(result: CUgraphExecUpdateResult) -> Result {
    if result == CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS {
        return Ok(());
    }
    Err(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
}
