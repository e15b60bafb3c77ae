//! Executables: instantiated graphs.

use std::ffi::{c_char, c_ulonglong};
use std::sync::Arc;

use curium_sys::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraph_st, CUgraphExec, CUgraphExec_st,
    CUgraphInstantiate_flags, CUgraphInstantiateResult, CUgraphNode, CUgraphNode_st, CUresult,
    CUstream_st, cuuint64_t,
};

use crate::argument::Pointer;
use crate::call::Call;
use crate::lock::{Mutex, Rank};
use crate::object::graph::executable::Executable;
use crate::object::graph::plan::Plan;
use crate::result::Result;

const ALL_FLAGS: u64 = (CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.0
    | CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD.0
    | CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.0
    | CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY.0)
    as u64;

const AUTO_FREE: u64 =
    CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.0 as u64;

const UPLOAD: u64 = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD.0 as u64;

const DEVICE_LAUNCH: u64 =
    CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.0 as u64;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuGraphInstantiate(
        &self,
        executable: Pointer<CUgraphExec>,
        graph: Pointer<CUgraph_st>,
        failing: Pointer<CUgraphNode>,
        _log: Pointer<c_char>,
        _size: usize,
    ) -> Result {
        self.instantiate_graph(executable, graph, 0, failing)
    }

    pub(crate) fn cuGraphInstantiate_v2(
        &self,
        executable: Pointer<CUgraphExec>,
        graph: Pointer<CUgraph_st>,
        failing: Pointer<CUgraphNode>,
        _log: Pointer<c_char>,
        _size: usize,
    ) -> Result {
        self.instantiate_graph(executable, graph, 0, failing)
    }

    pub(crate) fn cuGraphInstantiateWithFlags(
        &self,
        executable: Pointer<CUgraphExec>,
        graph: Pointer<CUgraph_st>,
        flags: c_ulonglong,
    ) -> Result {
        // Uploads need the stream of the other function.
        if flags & UPLOAD != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        self.instantiate_graph(executable, graph, flags, Pointer::null())
    }

    pub(crate) fn cuGraphInstantiateWithParams(
        &self,
        executable: Pointer<CUgraphExec>,
        graph: Pointer<CUgraph_st>,
        params: Pointer<CUDA_GRAPH_INSTANTIATE_PARAMS>,
    ) -> Result {
        if self.is_initialized() {
            self.require_current()?;
        }
        graph.required()?;
        let mut described = params.read()?;
        let mut failing = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable.
        let result = self.instantiate_graph(executable, graph, described.flags, unsafe {
            Pointer::from_raw(&raw mut failing)
        });
        described.hErrNode_out = failing;
        described.result_out = match (result, failing.is_null()) {
            (Ok(()), _) => CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS,
            (Err(_), false) => CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
            (Err(_), true) => CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR,
        };
        params.write(described)?;
        result
    }

    pub(crate) fn cuGraphExecDestroy(&self, executable: Pointer<CUgraphExec_st>) -> Result {
        let mut state = self.lock();
        let id = state.graphs.executable(executable)?;
        state.graphs.remove_executable(id);
        state.call_destructors();
        Ok(())
    }

    pub(crate) fn cuGraphExecGetFlags(
        &self,
        executable: Pointer<CUgraphExec_st>,
        flags: Pointer<cuuint64_t>,
    ) -> Result {
        let state = self.lock();
        let id = state.graphs.executable(executable)?;
        flags.write(
            state
                .graphs
                .get_executable(id)
                .map_or(0, |executable| executable.flags),
        )
    }

    pub(crate) fn cuGraphExecGetId(
        &self,
        executable: Pointer<CUgraphExec_st>,
        number: Pointer<u32>,
    ) -> Result {
        let state = self.lock();
        let id = state.graphs.executable(executable)?;
        number.write(
            state
                .graphs
                .get_executable(id)
                .map_or(0, |executable| executable.number),
        )
    }

    pub(crate) fn cuGraphUpload(
        &self,
        executable: Pointer<CUgraphExec_st>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let mut state = self.lock();
        state.working_stream(stream)?;
        state.graphs.executable(executable)?;
        state.uncaptured_stream(stream).map(drop)
    }

    pub(crate) fn cuGraphLaunch(
        &self,
        executable: Pointer<CUgraphExec_st>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let mut state = self.lock();
        state.working_stream(stream)?;
        let id = state.graphs.executable(executable)?;
        self.handle_report(state.stale_node(id))?;
        let stream = state.uncaptured_stream(stream)?;
        let target = state.contexts.valid_target(stream)?;
        let executable = state
            .graphs
            .get_executable(id)
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        // As on hardware, only the launch rejects such memory.
        if executable.plan.operates_on_managed_memory(self) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let freed =
            self.allocate_graph_memory(&executable.plan, executable.flags & AUTO_FREE != 0)?;
        let launch = executable.launch(freed);
        let begin = state.queue_after(stream, launch.last.as_slice(), launch.begin);
        let ends = launch
            .plan
            .submit(&mut state, target, begin.as_slice(), &launch.conditions);
        // The retained objects live until this launch completes, even if the executable is
        // destroyed.
        state.graphs.retain_objects(&launch.objects);
        let end = state.queue_after(stream, &ends, launch.end);
        if let Some(executable) = state.graphs.get_executable_mut(id) {
            executable.last = end;
        }
        Ok(())
    }

    pub(crate) fn cuGraphNodeGetEnabled(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        is_enabled: Pointer<u32>,
    ) -> Result {
        let mut state = self.lock();
        let step = state.graphs.step(executable, node)?;
        step.require_switchable()?;
        is_enabled.write(step.is_enabled.into())
    }

    pub(crate) fn cuGraphNodeSetEnabled(
        &self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
        is_enabled: u32,
    ) -> Result {
        let mut state = self.lock();
        let step = state.graphs.step(executable, node)?;
        step.require_switchable()?;
        step.is_enabled = is_enabled != 0;
        Ok(())
    }
}

impl Call<'_> {
    fn instantiate_graph(
        &self,
        executable: Pointer<CUgraphExec>,
        graph: Pointer<CUgraph_st>,
        flags: u64,
        failing: Pointer<CUgraphNode>,
    ) -> Result {
        let (mut state, _) = self.enter_current()?;
        state.check_potentially_unsafe_call()?;
        let output = executable.required()?;
        let graph = state.graphs.graph(graph)?;
        let both = AUTO_FREE | DEVICE_LAUNCH;
        if flags & !ALL_FLAGS != 0
            || flags & both == both
            || state.graphs.has_unused_condition(graph)
        {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if flags & DEVICE_LAUNCH != 0 {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        // As on hardware, nodes that allocate memory may have been added since.
        if state.graphs.has_only_executable(graph) {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        let plan = Plan::new(&state.graphs, graph).map_err(|node| {
            failing.write_if_not_null(node.as_raw());
            CUresult::CUDA_ERROR_INVALID_VALUE
        })?;
        self.handle_report(plan.stale(&state))?;
        let objects = state.graphs.retained_objects(graph);
        state.graphs.retain_objects(&objects);
        let conditions = Arc::new(Mutex::new(
            Rank::GraphConditions,
            state.graphs.graph_conditions(graph),
        ));
        let number = state.next_number() as u32;
        let executable = Executable {
            graph,
            plan,
            conditions,
            objects,
            flags,
            number,
            last: None,
        };
        output.write(state.graphs.insert_executable(executable).as_raw())
    }
}
