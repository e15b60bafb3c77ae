//! The time that a graph saves in a training step of many small kernels and copies, launched one by one and replayed.
//!
//! The network is the smallest whose step resembles larger ones: each layer multiplies its input by weights and adds biases,
//! element by element. A step consists of the forward pass, the loss, the backward pass, and the update of weights and biases.

mod network;
mod twin;

use std::cell::Cell;
use std::slice;
use std::time::{Duration, Instant};

use curium_driver::{Context, Graph, GraphExec, Stream};

use self::network::Network;
use crate::graph::launch_as_c;
use crate::{Comparison, Measurement, Plan, Result, Visit, Way};

/// A step that is enqueued operation by operation, with waiting; nanoseconds.
const LAUNCHED: &str = "graph/training-step/launched";
/// The same step as one graph launch, with waiting; nanoseconds.
const REPLAYED: &str = "graph/training-step/replayed";
/// The branches of the graph that update parameters.
const BRANCHES: usize = 4;

/// A network, and its step as a graph.
struct Training {
    network: Network,
    step: GraphExec,
    stream: Stream,
}

pub(crate) fn ids(_plan: &Plan) -> Vec<String> {
    [LAUNCHED, REPLAYED].map(str::to_owned).to_vec()
}

pub(crate) fn visit(context: &Context, plan: &Plan, visit: &mut Visit<'_>) -> Result<()> {
    if ![LAUNCHED, REPLAYED].iter().any(|id| plan.wants(id)) {
        return Ok(());
    }
    let mut training = Training::new(context)?;
    let alone = Cell::new(None);
    if plan.wants(LAUNCHED) {
        let steps = |way, count| training.launched(way, count);
        let mut measurement = Measurement::new(LAUNCHED.to_owned(), plan.rounds, [1; 2], steps)
            .with_note(|launched| {
                alone.set(Some([launched.c.median(), launched.curium.median()]));
                Ok(None)
            });
        visit(&mut measurement)?;
    }
    if plan.wants(REPLAYED) {
        let steps = |way, count| training.replayed(way, count);
        let measurement = Measurement::new(REPLAYED.to_owned(), plan.rounds, [1; 2], steps);
        visit(
            &mut measurement
                .with_note(|replayed| Ok(alone.get().map(|launched| saved(launched, replayed)))),
        )?;
    }
    Ok(())
}

/// Returns the time that the graph saves, if both were measured.
fn saved([c, curium]: [f64; 2], replayed: &Comparison) -> String {
    let (c, curium) = (c / replayed.c.median(), curium / replayed.curium.median());
    format!("launched / replayed: C {c:.2}, Curium {curium:.2}")
}

impl Training {
    fn new(context: &Context) -> Result<Self> {
        let stream = context.stream()?;
        let mut network = Network::new(&stream)?;
        // In the graph, the updates run concurrently with the backward pass and with each other.
        let step = Graph::capture(context, |scope| {
            let asides = (0..BRANCHES)
                .map(|_| scope.fork())
                .collect::<Result<Vec<_>, _>>()?;
            network.step(scope, &asides)
        })?;
        Ok(Self {
            network,
            step: step.instantiate()?,
            stream,
        })
    }

    fn launched(&mut self, way: Way, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        for _ in 0..count {
            match way {
                Way::C => self.network.step_as_c(&self.stream)?,
                Way::Curium => self
                    .network
                    .step(&self.stream, slice::from_ref(&self.stream))?,
            }
            self.stream.synchronize()?;
        }
        Ok(begin.elapsed())
    }

    fn replayed(&mut self, way: Way, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        for _ in 0..count {
            match way {
                Way::C => launch_as_c(&self.step, &self.stream)?,
                Way::Curium => self.step.launch(&self.stream)?,
            }
            self.stream.synchronize()?;
        }
        Ok(begin.elapsed())
    }
}
