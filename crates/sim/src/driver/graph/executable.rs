//! Executables: instantiated graphs.

use std::sync::Arc;

use curium_ptx::exec::Report;
use curium_sys::{CUdeviceptr, CUgraphConditionalHandle, CUgraphExec_st, CUgraphNode_st, CUresult};

use crate::argument::Pointer;
use crate::context::ticket::{Target, Ticket};
use crate::driver::graph::Graphs;
use crate::driver::locked::Locked;
use crate::driver::schedule::Work;
use crate::handle::Id;
use crate::object::event::Event;
use crate::object::graph::condition::Conditions;
use crate::object::graph::content::Content;
use crate::object::graph::executable::Executable;
use crate::object::graph::object::UserObject;
use crate::object::graph::plan::{Plan, SharedConditions, Step};
use crate::object::graph::{Graph, Node};
use crate::result::Result;

impl Locked<'_> {
    /// Enqueues the record of an event after steps of a graph.
    pub(crate) fn record_in_graph(
        &mut self,
        event: Id<Event>,
        target: Target,
        after: &[Ticket],
    ) -> Option<Ticket> {
        let stamp = self.record_work(event)?;
        let ticket = self.schedule.submit(target, after, stamp);
        self.contexts.set_record(event, Some(ticket));
        Some(ticket)
    }
}

impl Locked<'_> {
    /// Returns the report of the first node of an executable that uses a destroyed object.
    pub(crate) fn stale_node(&self, id: Id<Executable>) -> Option<Report> {
        self.graphs.executables.get(id)?.plan.stale(self)
    }
}

/// A copy of an executable for one launch, which later changes of the executable do not affect.
pub(crate) struct GraphLaunch {
    pub(crate) plan: Plan,
    pub(crate) conditions: SharedConditions,
    pub(crate) objects: Vec<(Id<UserObject>, u32)>,
    /// The end of the previous launch.
    pub(crate) last: Option<Ticket>,
    /// The work before all steps.
    pub(crate) begin: Work,
    /// The work after all steps.
    pub(crate) end: Work,
}

impl Executable {
    /// Returns a launch, which frees the memory at `freed` when it completes.
    pub(crate) fn launch(&self, freed: Vec<CUdeviceptr>) -> GraphLaunch {
        let conditions = Arc::clone(&self.conditions);
        let begin = Work::Device(Box::new(move |_| {
            conditions.lock().begin();
            Ok(())
        }));
        // Its allocations exist until the launch completes, even if the graph and the executable
        // are destroyed.
        let plan = self.plan.clone();
        let objects = self.objects.clone();
        let end = Work::Device(Box::new(move |driver| {
            drop(plan);
            for address in freed {
                driver.memory().free(address);
            }
            let mut state = driver.lock();
            state.graphs.release_objects(&objects);
            state.call_destructors();
            Ok(())
        }));
        GraphLaunch {
            plan: self.plan.clone(),
            conditions: Arc::clone(&self.conditions),
            objects: self.objects.clone(),
            last: self.last,
            begin,
            end,
        }
    }
}

impl Graphs {
    pub(crate) fn executable(&self, raw: Pointer<CUgraphExec_st>) -> Result<Id<Executable>> {
        let id = Id::from(raw);
        if self.executables.contains(id) {
            Ok(id)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }

    pub(crate) fn get_executable(&self, id: Id<Executable>) -> Option<&Executable> {
        self.executables.get(id)
    }

    pub(crate) fn get_executable_mut(&mut self, id: Id<Executable>) -> Option<&mut Executable> {
        self.executables.get_mut(id)
    }

    pub(crate) fn insert_executable(&mut self, executable: Executable) -> Id<Executable> {
        self.executables.insert(executable)
    }

    /// Removes an executable, and releases its user objects.
    pub(crate) fn remove_executable(&mut self, id: Id<Executable>) {
        if let Some(executable) = self.executables.remove(id) {
            self.release_objects(&executable.objects);
        }
    }

    /// Returns `true` if no further executable of a graph can exist: one exists, and the graph has
    /// conditional nodes or the executable allocates memory.
    pub(crate) fn has_only_executable(&self, graph: Id<Graph>) -> bool {
        let has_conditions = self.has_conditions(graph);
        self.executables.iter().any(|(_, executable)| {
            executable.graph == graph && (has_conditions || executable.plan.allocates())
        })
    }

    /// Returns the step of an executable for a node of its graph.
    pub(crate) fn step(
        &mut self,
        executable: Pointer<CUgraphExec_st>,
        node: Pointer<CUgraphNode_st>,
    ) -> Result<&mut Step> {
        let id = self.executable(executable)?;
        let node: Id<Node> = Id::from(node);
        let executable = self.executables.get_mut(id);
        executable
            .and_then(|executable| executable.plan.step_mut(node))
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
    }

    /// Returns the values of the conditional handles of a graph and of its child graphs.
    pub(crate) fn graph_conditions(&self, graph: Id<Graph>) -> Conditions {
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

    /// Returns `true` if a graph or a part of it has conditional nodes: it cannot be cloned, and
    /// only one executable of it can exist.
    pub(crate) fn has_conditions(&self, graph: Id<Graph>) -> bool {
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
    pub(crate) fn has_unused_condition(&self, graph: Id<Graph>) -> bool {
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
    pub(crate) fn keep_objects(
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
    pub(crate) fn retained_objects(&self, graph: Id<Graph>) -> Vec<(Id<UserObject>, u32)> {
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
