//! What a graph saves a step of training: many small kernels and copies, launched one by one and replayed, each to its end.
//!
//! The network is the smallest whose step has the shape of larger ones: each layer multiplies its input by weights and adds biases,
//! element by element; a step goes forward, compares with the targets, goes back, and changes weights and biases.

mod network;
mod twin;

use std::time::Instant;

use curium_driver::{Context, Graph, GraphExec, Stream};

use self::network::Network;
use crate::{Comparison, Plan, Result, Unit, Way};

/// A step whose work is put on a stream one by one, to its end; nanoseconds.
const LAUNCHED: &str = "graph/training-step/launched";
/// The same step as one launch of a graph, to its end; nanoseconds.
const REPLAYED: &str = "graph/training-step/replayed";

/// A network, and its step as a graph.
struct Training {
    network: Network,
    step: GraphExec,
    stream: Stream,
}

pub(crate) fn ids(_plan: &Plan) -> Vec<String> {
    [LAUNCHED, REPLAYED].map(str::to_owned).to_vec()
}

pub(crate) fn run(context: &Context, plan: &Plan, observe: &mut dyn FnMut(Comparison) -> Result<()>) -> Result<()> {
    if ![LAUNCHED, REPLAYED].iter().any(|id| plan.wants(id)) {
        return Ok(());
    }
    let mut training = Training::new(context)?;
    let measure = |id: &str, step: &mut dyn FnMut(Way) -> Result<f64>| {
        Comparison::measure(id.to_owned(), Unit::Nanoseconds, plan.rounds, step)
    };
    // Both are measured for either, which says what it saves.
    let launched = measure(LAUNCHED, &mut |way| training.launched(way))?;
    let mut replayed = measure(REPLAYED, &mut |way| training.replayed(way))?;
    let saved = |launched: f64, replayed: f64| launched / replayed;
    replayed.note = Some(format!(
        "launched / replayed: C {:.2}, Curium {:.2}",
        saved(launched.c.median(), replayed.c.median()),
        saved(launched.curium.median(), replayed.curium.median()),
    ));
    [launched, replayed].into_iter().filter(|comparison| plan.wants(&comparison.id)).try_for_each(observe)
}

impl Training {
    fn new(context: &Context) -> Result<Self> {
        let stream = context.stream()?;
        let mut network = Network::new(&stream)?;
        // In the graph, what changes the parameters is beside the way back.
        let step = Graph::capture(context, |scope| network.step(scope, &scope.fork()?))?.instantiate()?;
        Ok(Self { network, step, stream })
    }

    fn launched(&mut self, way: Way) -> Result<f64> {
        let begin = Instant::now();
        match way {
            Way::C => self.network.step_as_c(&self.stream)?,
            Way::Curium => self.network.step(&self.stream, &self.stream)?,
        }
        self.end(begin)
    }

    fn replayed(&mut self, way: Way) -> Result<f64> {
        let begin = Instant::now();
        match way {
            Way::C => twin::launch_graph(&self.step, &self.stream)?,
            Way::Curium => self.step.launch(&self.stream)?,
        }
        self.end(begin)
    }

    fn end(&self, begin: Instant) -> Result<f64> {
        self.stream.synchronize()?;
        Ok(begin.elapsed().as_nanos() as f64)
    }
}
