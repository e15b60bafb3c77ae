//! Builds a chain of kernels as a graph once, and launches it many times with one call each.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use std::time::Instant;

use curium::driver::Graph;
use curium::prelude::*;

const KERNELS: &str = include_str!("kernels/vectors.ptx");
const ELEMENTS: u32 = 1024;
const KERNELS_IN_GRAPH: u32 = 20;
const LAUNCHES: u32 = 50;

fn main() -> device::Outcome {
    let context = device::driver()?.device(0)?.primary_context()?;
    let stream = context.stream()?;
    let step =
        Library::from_ptx(context.driver(), KERNELS)?.kernel::<(&mut [u32], u32, u32)>("step")?;
    let data = DeviceBuffer::<u32>::zeroed(&stream, ELEMENTS as usize)?;

    let mut graph = Graph::new(&context)?;
    let mut last = None;
    for _ in 0..KERNELS_IN_GRAPH {
        let after = last.map_or_else(Vec::new, |node| vec![node]);
        let arguments = (data.as_pointer(), ELEMENTS, 1);
        // SAFETY: `step` writes the first ELEMENTS elements of `data`, which outlives the launches
        // below; each node depends on the previous one, and no other work accesses `data` until the
        // stream is synchronized.
        let node = unsafe {
            graph.add_kernel(
                &after,
                &step,
                LaunchConfig::for_elements(ELEMENTS as usize),
                arguments,
            )
        }?;
        last = Some(node.into());
    }
    let mut replay = graph.instantiate()?;
    // The executable graph keeps the kernels alive; the graph may be dropped.
    drop((graph, step));

    let begin = Instant::now();
    for _ in 0..LAUNCHES {
        replay.launch(&stream)?;
    }
    let enqueued = begin.elapsed();
    stream.synchronize()?;

    let expected = (0..KERNELS_IN_GRAPH * LAUNCHES).fold(0_u32, |value, _| next(value));
    assert_eq!(data.to_vec()?, vec![expected; ELEMENTS as usize]);
    println!("{LAUNCHES} launches of {KERNELS_IN_GRAPH} kernels were enqueued in {enqueued:.1?}");
    Ok(())
}

fn next(value: u32) -> u32 {
    value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}
