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
use crate::context::ticket::{Target, Ticket};
use crate::driver::schedule::Work;
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
        let id = state.executable(executable)?;
        if let Some(executable) = state.executables.remove(id) {
            state.release_objects(&executable.objects);
        }
        self.call_destructors(state);
        Ok(())
    }

    pub(crate) fn cuGraphExecGetFlags(
        &self,
        executable: Pointer<CUgraphExec_st>,
        flags: Pointer<cuuint64_t>,
    ) -> Result {
        let state = self.lock();
        let id = state.executable(executable)?;
        flags.write(
            state
                .executables
                .get(id)
                .map_or(0, |executable| executable.flags),
        )
    }

    pub(crate) fn cuGraphExecGetId(
        &self,
        executable: Pointer<CUgraphExec_st>,
        number: Pointer<u32>,
    ) -> Result {
        let state = self.lock();
        let id = state.executable(executable)?;
        number.write(
            state
                .executables
                .get(id)
                .map_or(0, |executable| executable.number),
        )
    }

    pub(crate) fn cuGraphUpload(
        &self,
        executable: Pointer<CUgraphExec_st>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let mut state = self.lock();
        self.working_stream(&mut state, stream)?;
        state.executable(executable)?;
        self.uncaptured_stream(&mut state, stream).map(drop)
    }

    pub(crate) fn cuGraphLaunch(
        &self,
        executable: Pointer<CUgraphExec_st>,
        stream: Pointer<CUstream_st>,
    ) -> Result {
        let mut state = self.lock();
        self.working_stream(&mut state, stream)?;
        let id = state.executable(executable)?;
        let stale = state
            .executables
            .get(id)
            .and_then(|executable| executable.plan.stale(self, &state));
        if stale.is_some() {
            // The report acquires the lock itself.
            drop(state);
            self.handle_report(stale)?;
            state = self.lock();
        }
        let stream = self.uncaptured_stream(&mut state, stream)?;
        let context = self.stream_context(&state, stream)?;
        let number = state.streams.get(stream).map_or(0, |stream| stream.number);
        let target = Target {
            device: state.valid_context(context)?.device,
            context,
            stream: number,
        };
        let Some(executable) = state.executables.get(id) else {
            return Ok(());
        };
        // As on hardware, only the launch rejects such memory.
        if executable.plan.operates_on_managed_memory(self) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let plan = executable.plan.clone();
        let conditions = Arc::clone(&executable.conditions);
        let objects = executable.objects.clone();
        let freed = self.allocate_graph_memory(&plan, executable.flags & AUTO_FREE != 0)?;
        let last: Vec<Ticket> = executable.last.into_iter().collect();
        let start = Arc::clone(&conditions);
        let begin = Work::Device(Box::new(move |_| {
            start.lock().begin();
            Ok(())
        }));
        let begin = self.queue_after(&mut state, stream, &last, begin);
        let ends = plan.submit(self, &mut state, target, begin.as_slice(), &conditions);
        // The retained objects live until this launch completes, even if the executable is destroyed.
        state.retain_objects(&objects);
        let end = Work::Device(Box::new(move |driver| {
            // Its allocations exist until here, even if the graph and the executable are destroyed.
            drop(plan);
            for address in freed {
                driver.memory().free(address);
            }
            let mut state = driver.lock();
            state.release_objects(&objects);
            driver.call_destructors(state);
            Ok(())
        }));
        let end = self.queue_after(&mut state, stream, &ends, end);
        if let Some(executable) = state.executables.get_mut(id) {
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
        let step = state.step(executable, node)?;
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
        let step = state.step(executable, node)?;
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
        self.permit_unsafe(&mut state)?;
        let output = executable.required()?;
        let graph = state.graph(graph)?;
        let both = AUTO_FREE | DEVICE_LAUNCH;
        if flags & !ALL_FLAGS != 0 || flags & both == both || state.has_unused_condition(graph) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if flags & DEVICE_LAUNCH != 0 {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        // As on hardware, nodes that allocate memory may have been added since.
        let has_conditions = state.has_conditions(graph);
        let is_repeated = state.executables.iter().any(|(_, executable)| {
            executable.graph == graph && (has_conditions || executable.plan.allocates())
        });
        if is_repeated {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        let plan = Plan::new(&state, graph).map_err(|node| {
            failing.write_if_not_null(node.as_raw());
            CUresult::CUDA_ERROR_INVALID_VALUE
        })?;
        let stale = plan.stale(self, &state);
        if stale.is_some() {
            // The report acquires the lock itself.
            drop(state);
            self.handle_report(stale)?;
            state = self.lock();
        }
        let objects = state.retained_objects(graph);
        state.retain_objects(&objects);
        let conditions = Arc::new(Mutex::new(
            Rank::GraphConditions,
            state.graph_conditions(graph),
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
        output.write(state.executables.insert(executable).as_raw())
    }
}
