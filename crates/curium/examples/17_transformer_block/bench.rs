//! The time of a step.

use std::time::Instant;

use curium::driver::GraphExec;
use curium::prelude::*;

use crate::block::{Block, Result, Shape};

/// The number of measurements.
const SAMPLES: usize = 25;
/// The number of replays of a measurement, after which the stream is synchronized once.
const REPLAYS: u32 = 20;
/// The number of replays before the first measurement.
const WARM_UP: u32 = 50;

/// Measures the forward pass, and both passes, each as a graph.
pub(crate) fn run(
    block: &mut Block,
    context: &Context,
    stream: &Stream,
    shape: Shape,
) -> Result<()> {
    for (name, has_backward) in [("forward", false), ("step", true)] {
        let mut graph = block.capture(context, has_backward)?.instantiate()?;
        replay(&mut graph, stream, WARM_UP)?;
        let mut times = (0..SAMPLES)
            .map(|_| replay(&mut graph, stream, REPLAYS))
            .collect::<Result<Vec<_>>>()?;
        times.sort_by(f64::total_cmp);
        let [lower, median, upper] =
            [SAMPLES / 4, SAMPLES / 2, SAMPLES * 3 / 4].map(|index| times[index]);
        let operations = operations(shape) * if has_backward { 1.0 } else { 1.0 / 3.0 };
        let speed = operations / median / 1e9;
        println!(
            "{name:8} {median:.4} ms (quartiles {lower:.4} to {upper:.4}), {speed:.0} TFLOP/s"
        );
    }
    Ok(())
}

/// Returns the number of floating-point operations of the products of both passes, without those
/// that the mask makes superfluous.
fn operations(shape: Shape) -> f64 {
    let rows = shape.rows() as f64;
    let width = shape.width as f64;
    let of_layers = 2.0 * rows * width * 12.0 * width;
    let of_attention =
        4.0 * rows * shape.sequence as f64 * width * if shape.is_causal { 0.5 } else { 1.0 };
    3.0 * (of_layers + of_attention)
}

/// Returns the time of a replay in milliseconds, the mean of `count`.
fn replay(graph: &mut GraphExec, stream: &Stream, count: u32) -> Result<f64> {
    let begin = Instant::now();
    for _ in 0..count {
        graph.launch(stream)?;
    }
    stream.synchronize()?;
    Ok(begin.elapsed().as_secs_f64() * 1e3 / f64::from(count))
}
