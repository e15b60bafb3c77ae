//! Updates of executables.

use curium_sys::{
    CUgraph_st, CUgraphExec_st, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo, CUgraphNode,
    CUgraphNode_st, CUgraphNodeParams, CUresult,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::driver::graph::update::INVALID;
use crate::handle::Id;
use crate::object::graph::content::Content;
use crate::object::graph::plan::Plan;
use crate::object::graph::update::{UpdateFailure, failure};
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGraphExecChildGraphNodeSetParams(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        child: Pointer<CUgraph_st>,
    ) -> Result {
        let mut state = self.lock();
        let child = state.graphs.graph(child)?;
        let plan = Plan::new(&state.graphs, child).map_err(|_| INVALID)?;
        let step = state.graphs.step(executable, node)?;
        let [part] = step.parts.as_mut_slice() else {
            return Err(INVALID);
        };
        part.adopt(&plan)
            .map_err(|_| CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)?;
        let id = state.graphs.executable(executable)?;
        let objects = state.graphs.retained_objects(child);
        // The objects of the previous child remain: they cannot be identified any more.
        state.graphs.keep_objects(id, objects, false);
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
            .graphs
            .node(node)
            .map(|(_, node)| (node.content.kind(), node.graph))?;
        let is_changeable = !matches!(
            state.graphs.step(executable, node)?.content,
            Content::Child(_) | Content::Condition(_) | Content::Allocate(_) | Content::Free(_)
        );
        if described.type_ != kind || !is_changeable {
            return Err(INVALID);
        }
        let content = state.read_content(graph, &mut described)?;
        state.graphs.update(self, executable, node, content)
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

impl Call<'_> {
    /// Updates an executable from a graph of the same shape. If it does not fit, returns the reason
    /// with the node.
    fn update_from(
        &self,
        executable: Pointer<CUgraphExec_st>,
        graph: Pointer<CUgraph_st>,
    ) -> Result<CUgraphExecUpdateResultInfo> {
        let mut state = self.lock();
        let id = state.graphs.executable(executable)?;
        let graph = state.graphs.graph(graph)?;
        let plan = Plan::new(&state.graphs, graph).map_err(|_| INVALID)?;
        let outcome = state
            .graphs
            .get_executable_mut(id)
            .map(|executable| executable.plan.adopt(&plan));
        if matches!(outcome, Some(Ok(()))) {
            let conditions = state.graphs.graph_conditions(graph);
            if let Some(executable) = state.graphs.get_executable_mut(id) {
                executable.adopt_conditions(conditions);
            }
            let objects = state.graphs.retained_objects(graph);
            state.graphs.keep_objects(id, objects, true);
            state.call_destructors();
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
