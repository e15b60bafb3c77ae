//! The steps of an executable: a graph's nodes with their data, in topological order.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::activity;
use crate::context::ticket::{Target, Ticket};
use crate::driver::Driver;
use crate::driver::graph::Graphs;
use crate::driver::locked::Locked;
use crate::driver::schedule::Work;
use crate::handle::Id;
use crate::object::event::Event;
use crate::object::graph::content::Content;
use crate::object::graph::plan::{Plan, SharedConditions, Step};
use crate::object::graph::{Graph, Node};
use crate::result::Result;

impl Plan {
    /// Returns the plan of a graph. The error is a node that is on a cycle, or depends on one.
    pub(crate) fn new(graphs: &Graphs, graph: Id<Graph>) -> std::result::Result<Self, Id<Node>> {
        let mut remaining = graphs.graph_nodes(graph);
        let mut positions = HashMap::new();
        let mut steps = Vec::new();
        while let Some(first) = remaining.first().copied() {
            let (ready, waiting): (Vec<_>, Vec<_>) = remaining.iter().copied().partition(|id| {
                let edges = graphs.nodes.get(*id).map_or(&[][..], |node| &node.after);
                edges.iter().all(|edge| positions.contains_key(&edge.from))
            });
            if ready.is_empty() {
                return Err(first);
            }
            for id in ready {
                let Some(node) = graphs.nodes.get(id) else {
                    continue;
                };
                let after = node
                    .after
                    .iter()
                    .filter_map(|edge| positions.get(&edge.from).copied())
                    .collect();
                let parts = node
                    .content
                    .parts()
                    .into_iter()
                    .map(|part| Self::new(graphs, part));
                let parts = parts.collect::<std::result::Result<_, _>>()?;
                positions.insert(id, steps.len());
                steps.push(Step {
                    node: id,
                    number: node.number,
                    content: node.content.clone(),
                    after,
                    is_enabled: true,
                    parts,
                });
            }
            remaining = waiting;
        }
        Ok(Self { steps })
    }

    /// Submits every step after `begin`, and returns the tickets that cover all of them.
    pub(crate) fn submit(
        &self,
        state: &mut Locked<'_>,
        target: Target,
        begin: &[Ticket],
        conditions: &SharedConditions,
    ) -> Vec<Ticket> {
        let mut ends: Vec<Vec<Ticket>> = Vec::new();
        for step in &self.steps {
            let mut after: Vec<Ticket> = step
                .after
                .iter()
                .flat_map(|index| ends[*index].clone())
                .collect();
            if step.after.is_empty() {
                after.extend(begin);
            }
            ends.push(step.submit(state, target, &after, conditions));
        }
        let mut all: Vec<Ticket> = ends.into_iter().flatten().collect();
        if all.is_empty() {
            all.extend(begin);
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Runs every enabled step on the calling worker thread.
    fn run(&self, driver: &Driver, conditions: &SharedConditions) -> Result {
        self.steps
            .iter()
            .filter(|step| step.is_enabled)
            .try_for_each(|step| step.run(driver, conditions))
    }
}

impl Step {
    fn submit(
        &self,
        state: &mut Locked<'_>,
        target: Target,
        after: &[Ticket],
        conditions: &SharedConditions,
    ) -> Vec<Ticket> {
        if !self.is_enabled {
            return after.to_vec();
        }
        let work = match &self.content {
            Content::Child(_) => {
                let parts = self.parts.iter();
                return parts
                    .flat_map(|part| part.submit(state, target, after, conditions))
                    .collect();
            }
            Content::Wait(event) => {
                let record = state.contexts.event(*event).and_then(Event::ticket);
                return after.iter().copied().chain(record).collect();
            }
            Content::Record(event) => {
                return state
                    .record_in_graph(*event, target, after)
                    .into_iter()
                    .collect();
            }
            Content::Batch(batch) => {
                let begin = after.to_vec();
                return batch.works().fold(begin, |after, work| {
                    vec![state.schedule.submit(target, &after, work)]
                });
            }
            Content::Host(function) => Work::Host(function.clone()),
            Content::Condition(_) => {
                let step = self.clone();
                let conditions = Arc::clone(conditions);
                Work::Device(Box::new(move |driver| step.run(driver, &conditions)))
            }
            Content::Library(operation) if operation.condition.is_some() => {
                let wait = operation
                    .wait()
                    .map(|wait| state.schedule.submit(target, after, wait));
                let after: Vec<_> = wait.map_or_else(|| after.to_vec(), |wait| vec![wait]);
                let operation = operation.clone();
                let number = self.number;
                let work = Work::Device(Box::new(move |driver| {
                    activity::in_node(number, || operation.run(driver))
                }));
                return vec![state.schedule.submit(target, &after, work)];
            }
            content => {
                let content = content.clone();
                let conditions = Arc::clone(conditions);
                let number = self.number;
                Work::Device(Box::new(move |driver| {
                    activity::in_node(number, || content.run(driver, Some(&conditions)))
                }))
            }
        };
        vec![state.schedule.submit(target, after, work)]
    }

    fn run(&self, driver: &Driver, conditions: &SharedConditions) -> Result {
        match &self.content {
            Content::Child(_) => self
                .parts
                .iter()
                .try_for_each(|part| part.run(driver, conditions)),
            Content::Condition(condition) => {
                for ran in 0.. {
                    if driver.canceled().load(Ordering::Acquire) {
                        break;
                    }
                    let value = conditions.lock().get(condition.handle);
                    let Some(body) = condition.chooses(value, ran) else {
                        break;
                    };
                    self.parts[body].run(driver, conditions)?;
                }
                Ok(())
            }
            content => activity::in_node(self.number, || content.run(driver, Some(conditions))),
        }
    }
}
