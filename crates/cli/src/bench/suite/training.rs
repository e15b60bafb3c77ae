//! The time that a graph saves in a training step of many small kernels and copies, launched one by
//! one and replayed.
//!
//! The network is the smallest whose step resembles larger ones: each layer multiplies its input by
//! weights and adds biases, element by element. A step consists of the forward pass, the loss, the
//! backward pass, and the update of weights and biases.

mod c_network;
mod network;

use std::slice;
use std::time::{Duration, Instant};

use anyhow::Result;
use curium::driver::GraphExec;
use curium::prelude::{Context, Graph, Stream};

use self::network::Network;
use super::graph::launch_as_c;
use super::{Comparison, Implementation, Measurement, Observer, Plan};

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

pub(super) fn ids() -> [String; 2] {
    [LAUNCHED, REPLAYED].map(str::to_owned)
}

pub(super) fn run(context: &Context, plan: &Plan, observe: &mut Observer<'_>) -> Result<()> {
    if !plan.wants(LAUNCHED) && !plan.wants(REPLAYED) {
        return Ok(());
    }
    let mut training = Training::new(context)?;
    let launched = if plan.wants(LAUNCHED) {
        let measurement = Measurement::new(
            LAUNCHED.to_owned(),
            plan.rounds,
            [1; 2],
            |implementation, count| training.launch_steps(implementation, count),
        );
        let comparison = measurement.compare()?;
        observe(comparison.clone())?;
        Some(comparison)
    } else {
        None
    };
    if plan.wants(REPLAYED) {
        let measurement = Measurement::new(
            REPLAYED.to_owned(),
            plan.rounds,
            [1; 2],
            |implementation, count| training.replay_steps(implementation, count),
        );
        let mut replayed = measurement.compare()?;
        replayed.note = launched.map(|launched| speedup(&launched, &replayed));
        observe(replayed)?;
    }
    Ok(())
}

/// Describes the time that the graph saves.
fn speedup(launched: &Comparison, replayed: &Comparison) -> String {
    let c = launched.c.median() / replayed.c.median();
    let curium = launched.curium.median() / replayed.curium.median();
    format!("launched / replayed: C {c:.2}, Curium {curium:.2}")
}

impl Training {
    fn new(context: &Context) -> Result<Self> {
        let stream = context.stream()?;
        let mut network = Network::new(&stream)?;
        // In the graph, the updates run concurrently with the backward pass and with each other.
        let step = Graph::capture(context, |scope| {
            let branches = (0..BRANCHES)
                .map(|_| scope.fork())
                .collect::<Result<Vec<_>, _>>()?;
            network.step(scope, &branches)
        })?;
        Ok(Self {
            network,
            step: step.instantiate()?,
            stream,
        })
    }

    fn launch_steps(&mut self, implementation: Implementation, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        for _ in 0..count {
            match implementation {
                Implementation::C => self.network.step_as_c(&self.stream)?,
                Implementation::Curium => self
                    .network
                    .step(&self.stream, slice::from_ref(&self.stream))?,
            }
            self.stream.synchronize()?;
        }
        Ok(begin.elapsed())
    }

    fn replay_steps(&mut self, implementation: Implementation, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        for _ in 0..count {
            match implementation {
                Implementation::C => launch_as_c(&self.step, &self.stream)?,
                Implementation::Curium => self.step.launch(&self.stream)?,
            }
            self.stream.synchronize()?;
        }
        Ok(begin.elapsed())
    }
}
