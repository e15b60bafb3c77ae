//! Changing executables.

use curium_sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUctx_st, CUevent_st, CUgraph_st, CUgraphExec_st, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo,
    CUgraphNode, CUgraphNode_st, CUgraphNodeParams, CUresult,
};

use super::plan::Plan;
use super::{Content, Node};
use crate::argument::{ConstPointer, Pointer};
use crate::driver::{Driver, HostFunction, Result, State};
use crate::handle::Id;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// Why a graph does not fit an executable, with the node.
type Misfit = (CUgraphExecUpdateResult, Id<Node>);

impl State {
    /// Gives the step of a node another content of the same kind.
    pub(super) fn update(
        &mut self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        content: Content,
    ) -> Result {
        let step = self.step(executable, node)?;
        if step.content.kind() != content.kind() {
            return Err(INVALID);
        }
        step.content = content;
        Ok(())
    }
}

#[expect(non_snake_case, reason = "these are C's names")]
impl Driver {
    pub(crate) fn cuGraphExecKernelNodeSetParams(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        params: ConstPointer<CUDA_KERNEL_NODE_PARAMS_v1>,
    ) -> Result {
        let params = params.read()?;
        let mut state = self.lock();
        let content = self.kernel_v1(&mut state, &params)?;
        state.update(executable, node, content)
    }

    pub(crate) fn cuGraphExecKernelNodeSetParams_v2(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        params: ConstPointer<CUDA_KERNEL_NODE_PARAMS>,
    ) -> Result {
        let params = params.read()?;
        let mut state = self.lock();
        let content = self.kernel(&mut state, &params)?;
        state.update(executable, node, content)
    }

    pub(crate) fn cuGraphExecMemcpyNodeSetParams(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        copy: ConstPointer<CUDA_MEMCPY3D>,
        _context: Pointer<CUctx_st>,
    ) -> Result {
        let copy = copy.read()?;
        let mut state = self.lock();
        let content = self.copy_content(&state, copy)?;
        state.update(executable, node, content)
    }

    pub(crate) fn cuGraphExecMemsetNodeSetParams(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        set: ConstPointer<CUDA_MEMSET_NODE_PARAMS>,
        _context: Pointer<CUctx_st>,
    ) -> Result {
        let content = self.set_content(set.read()?)?;
        self.lock().update(executable, node, content)
    }

    pub(crate) fn cuGraphExecHostNodeSetParams(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        params: ConstPointer<CUDA_HOST_NODE_PARAMS>,
    ) -> Result {
        let params = params.read()?;
        self.lock().update(executable, node, Content::Host(HostFunction::new(params.fn_, params.userData)?))
    }

    pub(crate) fn cuGraphExecEventRecordNodeSetEvent(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let mut state = self.lock();
        let event = self.event_of(&state, event)?;
        state.update(executable, node, Content::Record(event))
    }

    pub(crate) fn cuGraphExecEventWaitNodeSetEvent(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let mut state = self.lock();
        let event = self.event_of(&state, event)?;
        state.update(executable, node, Content::Wait(event))
    }

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
        let [part] = step.parts.as_mut_slice() else { return Err(INVALID) };
        part.adopt(&plan).map_err(|_| INVALID)
    }

    pub(crate) fn cuGraphExecNodeSetParams(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        params: Pointer<CUgraphNodeParams>,
    ) -> Result {
        let mut described = params.read()?;
        let mut state = self.lock();
        let (kind, graph) = state.node(node).map(|(_, node)| (node.content.kind(), node.graph))?;
        let is_changeable = !matches!(state.step(executable, node)?.content, Content::Child(_) | Content::Condition(_));
        if described.type_ != kind || !is_changeable {
            return Err(INVALID);
        }
        let content = self.content_of(&mut state, graph, &mut described)?;
        state.update(executable, node, content)
    }

    pub(crate) fn cuGraphExecUpdate(
        &self,
        executable: Pointer<CUgraphExec_st>,
        graph: Pointer<CUgraph_st>,
        failing: Pointer<CUgraphNode>,
        result: Pointer<CUgraphExecUpdateResult>,
    ) -> Result {
        let (outcome, node) = self.update_from(executable, graph)?;
        failing.write_if_asked(node);
        result.write(outcome)?;
        failure(outcome)
    }

    pub(crate) fn cuGraphExecUpdate_v2(
        &self,
        executable: Pointer<CUgraphExec_st>,
        graph: Pointer<CUgraph_st>,
        info: Pointer<CUgraphExecUpdateResultInfo>,
    ) -> Result {
        let place = info.required()?;
        let (result, node) = self.update_from(executable, graph)?;
        place.write(CUgraphExecUpdateResultInfo { result, errorNode: node, errorFromNode: std::ptr::null_mut() })?;
        failure(result)
    }
}

impl Driver {
    /// Gives an executable the contents of a graph of the same shape; where it does not fit, says why, with the node.
    fn update_from(
        &self,
        executable: Pointer<CUgraphExec_st>,
        graph: Pointer<CUgraph_st>,
    ) -> Result<(CUgraphExecUpdateResult, CUgraphNode)> {
        let mut state = self.lock();
        let (id, graph) = (state.executable(executable)?, state.graph(graph)?);
        let plan = Plan::new(&state, graph).map_err(|_| INVALID)?;
        let outcome = state.executables.get_mut(id).map(|executable| executable.plan.adopt(&plan));
        Ok(match outcome {
            Some(Err((why, node))) => (why, node.as_raw()),
            _ => (CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS, std::ptr::null_mut()),
        })
    }
}

impl Plan {
    /// Takes over the contents of a plan of the same shape, or else nothing.
    fn adopt(&mut self, other: &Self) -> std::result::Result<(), Misfit> {
        self.fits(other)?;
        self.take(other);
        Ok(())
    }

    fn fits(&self, other: &Self) -> std::result::Result<(), Misfit> {
        let changed = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        for (index, new) in other.steps.iter().enumerate() {
            let old = self.steps.get(index).filter(|old| old.after == new.after).ok_or((changed, new.node))?;
            if old.content.kind() != new.content.kind() {
                return Err((CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, new.node));
            }
            if old.parts.len() != new.parts.len() {
                return Err((CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, new.node));
            }
            old.parts.iter().zip(&new.parts).try_for_each(|(old, new)| old.fits(new))?;
        }
        match self.steps.get(other.steps.len()) {
            Some(missing) => Err((changed, missing.node)),
            None => Ok(()),
        }
    }

    fn take(&mut self, other: &Self) {
        for (old, new) in self.steps.iter_mut().zip(&other.steps) {
            // Conditional nodes keep the values that they look at.
            if !matches!(old.content, Content::Condition(_)) {
                old.content = new.content.clone();
            }
            old.parts.iter_mut().zip(&new.parts).for_each(|(old, new)| old.take(new));
        }
    }
}

fn failure(result: CUgraphExecUpdateResult) -> Result {
    if result == CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS {
        return Ok(());
    }
    Err(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
}
