//! Updates of executables.

use curium_sys::{
    CUgraph_st, CUgraphExec_st, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo, CUgraphNode,
    CUgraphNode_st, CUgraphNodeParams, CUresult,
};

use super::plan::Plan;
use super::{Content, Node};
use crate::argument::Pointer;
use crate::driver::{Driver, Result, State};
use crate::handle::Id;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// The reason why a graph does not fit an executable.
struct UpdateFailure {
    why: CUgraphExecUpdateResult,
    node: Id<Node>,
    /// The source of the edge that the executable lacks.
    from: Option<Id<Node>>,
}

impl State {
    /// Replaces the content of a step by one of the same kind.
    pub(super) fn update(
        &mut self,
        driver: &Driver,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        content: Content,
    ) -> Result {
        let step = self.step(executable, node)?;
        if step.content.kind() != content.kind() {
            return Err(INVALID);
        }
        if let (Content::Copy(before), Content::Copy(after)) = (&step.content, &content)
            && before.memory_kinds(driver) != after.memory_kinds(driver)
        {
            return Err(INVALID);
        }
        if let (Content::Batch(before), Content::Batch(after)) = (&step.content, &content)
            && !before.has_same_operations(after)
        {
            return Err(INVALID);
        }
        step.content = driver.inherit_attributes(&step.content, content)?;
        Ok(())
    }
}

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Driver {
    pub(crate) fn cuGraphExecChildGraphNodeSetParams(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        child: Pointer<CUgraph_st>,
    ) -> Result {
        let mut state = self.lock();
        let child = state.graph(child)?;
        let plan = Plan::new(&state, child).map_err(|_| INVALID)?;
        let step = state.step(executable, node)?;
        let [part] = step.parts.as_mut_slice() else {
            return Err(INVALID);
        };
        part.adopt(&plan)
            .map_err(|_| CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)?;
        let id = state.executable(executable)?;
        let objects = state.retained_objects(child);
        // The objects of the previous child remain: they cannot be identified any more.
        state.keep_objects(id, objects, false);
        Ok(())
    }

    pub(crate) fn cuGraphExecNodeSetParams(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUgraphNodeParams>,
    ) -> Result {
        let mut described = params.read()?;
        let mut state = self.lock();
        let (kind, graph) = state
            .node(node)
            .map(|(_, node)| (node.content.kind(), node.graph))?;
        let is_changeable = !matches!(
            state.step(executable, node)?.content,
            Content::Child(_) | Content::Condition(_) | Content::Allocate(_) | Content::Free(_)
        );
        if described.type_ != kind || !is_changeable {
            return Err(INVALID);
        }
        let content = self.read_content(&mut state, graph, &mut described)?;
        state.update(self, executable, node, content)
    }

    pub(crate) fn cuGraphExecUpdate(
        &self,
        executable: Pointer<CUgraphExec_st>,
        graph: Pointer<CUgraph_st>,
        failing: Pointer<CUgraphNode>,
        result: Pointer<CUgraphExecUpdateResult>,
    ) -> Result {
        let info = self.update_from(executable, graph)?;
        failing.write_if_not_null(info.errorNode);
        result.write_if_not_null(info.result);
        failure(info.result)
    }

    pub(crate) fn cuGraphExecUpdate_v2(
        &self,
        executable: Pointer<CUgraphExec_st>,
        graph: Pointer<CUgraph_st>,
        info: Pointer<CUgraphExecUpdateResultInfo>,
    ) -> Result {
        let outcome = self.update_from(executable, graph)?;
        info.write_if_not_null(outcome);
        failure(outcome.result)
    }
}

impl Driver {
    /// Updates an executable from a graph of the same shape. If it does not fit, returns the reason with the node.
    fn update_from(
        &self,
        executable: Pointer<CUgraphExec_st>,
        graph: Pointer<CUgraph_st>,
    ) -> Result<CUgraphExecUpdateResultInfo> {
        let mut state = self.lock();
        let id = state.executable(executable)?;
        let graph = state.graph(graph)?;
        let plan = Plan::new(&state, graph).map_err(|_| INVALID)?;
        let outcome = state
            .executables
            .get_mut(id)
            .map(|executable| executable.plan.adopt(&plan));
        if matches!(outcome, Some(Ok(()))) {
            let conditions = state.graph_conditions(graph);
            if let Some(executable) = state.executables.get_mut(id) {
                executable.adopt_conditions(conditions);
            }
            let objects = state.retained_objects(graph);
            state.keep_objects(id, objects, true);
            self.call_destructors(state);
        }
        Ok(match outcome {
            Some(Err(UpdateFailure { why, node, from })) => CUgraphExecUpdateResultInfo {
                result: why,
                errorNode: node.as_raw(),
                errorFromNode: from.map_or(std::ptr::null_mut(), Id::as_raw),
            },
            _ => CUgraphExecUpdateResultInfo::default(),
        })
    }
}

impl Plan {
    /// Replaces the contents by those of a plan of the same shape, or changes nothing.
    fn adopt(&mut self, other: &Self) -> std::result::Result<(), UpdateFailure> {
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

fn failure(result: CUgraphExecUpdateResult) -> Result {
    if result == CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS {
        return Ok(());
    }
    Err(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
}
