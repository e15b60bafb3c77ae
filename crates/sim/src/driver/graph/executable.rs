//! Executables: instantiated graphs.

use std::ffi::{c_char, c_ulonglong};
use std::sync::Arc;

use crate::lock::{Mutex, Rank};
use curium_sys::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraph_st, CUgraphConditionalHandle, CUgraphExec,
    CUgraphExec_st, CUgraphInstantiate_flags, CUgraphInstantiateResult, CUgraphNode,
    CUgraphNode_st, CUresult, CUstream_st, cuuint64_t,
};

use super::condition::Conditions;
use super::plan::{Plan, SharedConditions};
use super::{Content, Graph, Node, UserObject};
use crate::argument::Pointer;
use crate::driver::{Driver, Event, Result, State};
use crate::handle::{Id, Kind, Object};
use crate::schedule::{Target, Ticket, Work};

/// A graph at the time of its instantiation, with the updates since.
pub(crate) struct Executable {
    /// The graph that it was instantiated from, which may be destroyed.
    graph: Id<Graph>,
    pub(super) plan: Plan,
    conditions: SharedConditions,
    objects: Vec<(Id<UserObject>, u32)>,
    flags: u64,
    number: u32,
    /// The end of the last launch: launches do not overlap.
    last: Option<Ticket>,
}

impl Object for Executable {
    type Raw = CUgraphExec_st;
    const KIND: Kind = Kind::GraphExec;
}

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
impl Driver {
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

impl Driver {
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

    /// Enqueues the record of an event after steps of a graph.
    pub(super) fn record_in_graph(
        &self,
        state: &mut State,
        event: Id<Event>,
        target: Target,
        after: &[Ticket],
    ) -> Option<Ticket> {
        let stamp = self.record_work(state, event)?;
        let ticket = state.schedule.submit(target, after, stamp);
        if let Some(event) = state.events.get_mut(event) {
            event.ticket = Some(ticket);
        }
        Some(ticket)
    }
}

impl Executable {
    /// Replaces the conditional values by those of an updated graph. Launches that were enqueued before keep theirs.
    pub(super) fn adopt_conditions(&mut self, mut conditions: Conditions) {
        conditions.keep_values(&self.conditions.lock());
        self.conditions = Arc::new(Mutex::new(Rank::GraphConditions, conditions));
    }
}

impl State {
    pub(super) fn executable(&self, raw: Pointer<CUgraphExec_st>) -> Result<Id<Executable>> {
        let id = Id::from(raw);
        if self.executables.contains(id) {
            Ok(id)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }

    /// Returns the step of an executable for a node of its graph.
    pub(super) fn step(
        &mut self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
    ) -> Result<&mut super::plan::Step> {
        let id = self.executable(executable)?;
        let node: Id<Node> = Id::from(node);
        let executable = self.executables.get_mut(id);
        executable
            .and_then(|executable| executable.plan.step_mut(node))
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// Returns the values of the conditional handles of a graph and of its child graphs.
    pub(super) fn graph_conditions(&self, graph: Id<Graph>) -> Conditions {
        let mut conditions = self
            .graphs
            .get(graph)
            .map(|graph| graph.conditions.clone())
            .unwrap_or_default();
        for part in self.subgraphs(graph) {
            conditions.extend(self.graph_conditions(part));
        }
        conditions
    }

    /// Returns `true` if a graph or a part of it has conditional nodes: it cannot be cloned, and only one executable of it can exist.
    pub(super) fn has_conditions(&self, graph: Id<Graph>) -> bool {
        let nodes = self.graph_nodes(graph);
        let has_own = nodes
            .iter()
            .filter_map(|node| self.nodes.get(*node))
            .any(|node| node.content.is_condition());
        has_own
            || self
                .subgraphs(graph)
                .into_iter()
                .any(|part| self.has_conditions(part))
    }

    /// Returns `true` if no node uses a conditional handle of a graph.
    fn has_unused_condition(&self, graph: Id<Graph>) -> bool {
        self.graphs.get(graph).is_some_and(|values| {
            values
                .conditions
                .handles()
                .any(|handle| !self.uses_condition(graph, handle))
        })
    }

    /// Returns `true` if a node of a graph, or of a graph in its nodes, uses a conditional handle.
    fn uses_condition(&self, graph: Id<Graph>, handle: CUgraphConditionalHandle) -> bool {
        let has_own = self
            .graph_nodes(graph)
            .iter()
            .filter_map(|node| self.nodes.get(*node))
            .any(|node| matches!(&node.content, Content::Condition(condition) if condition.handle == handle));
        has_own
            || self
                .subgraphs(graph)
                .into_iter()
                .any(|part| self.uses_condition(part, handle))
    }

    /// Makes an executable keep objects, replacing or extending the previous ones.
    pub(super) fn keep_objects(
        &mut self,
        id: Id<Executable>,
        objects: Vec<(Id<UserObject>, u32)>,
        replaces: bool,
    ) {
        self.retain_objects(&objects);
        let released = match self.executables.get_mut(id) {
            Some(executable) if replaces => std::mem::replace(&mut executable.objects, objects),
            Some(executable) => {
                executable.objects.extend(objects);
                Vec::new()
            }
            None => objects,
        };
        self.release_objects(&released);
    }

    /// Returns the objects that a graph and its parts keep alive.
    pub(super) fn retained_objects(&self, graph: Id<Graph>) -> Vec<(Id<UserObject>, u32)> {
        let mut objects = self
            .graphs
            .get(graph)
            .map(|graph| graph.objects.clone())
            .unwrap_or_default();
        for part in self.subgraphs(graph) {
            objects.extend(self.retained_objects(part));
        }
        objects
    }

    fn subgraphs(&self, graph: Id<Graph>) -> Vec<Id<Graph>> {
        let nodes = self.graph_nodes(graph);
        nodes
            .iter()
            .filter_map(|node| self.nodes.get(*node))
            .flat_map(|node| node.content.parts())
            .collect()
    }
}
