//! Operations in graphs: every rank captures and launches them alike, and the graph keeps the
//! communicator and leases the memory.

use curium_driver::Graph;
use curium_tests::{TestResult, driver_test};

use curium_nccl::Reduction;

use super::{Rank, on_ranks};

#[driver_test(on_ranks(4))]
fn captured_operation_runs_at_each_launch(rank: &mut Rank) -> TestResult {
    let size = rank.size() as f32;
    let mut memory = rank.buffer(&[1.0_f32; 100]);
    // NCCL connects the ranks at the first operation, outside the capture.
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Max)?;
    let Rank {
        communicator,
        stream,
    } = rank;
    let graph = Graph::capture(&communicator.context().clone(), |scope| {
        communicator.all_reduce_in_place(scope, &mut memory, Reduction::Sum)
    });
    let mut executable = graph?.instantiate()?;
    assert_eq!(
        memory.to_vec()?,
        [1.0; 100],
        "nothing runs while it is captured"
    );
    for _ in 0..3 {
        executable.launch(stream)?;
    }
    assert_eq!(memory.to_vec()?, [size * size * size; 100]);
    // Operations beside the graph keep their order.
    memory.fill(2.0)?;
    executable.launch(stream)?;
    communicator.all_reduce_in_place(stream, &mut memory, Reduction::Sum)?;
    assert_eq!(memory.to_vec()?, [2.0 * size * size; 100]);
    drop(executable);
    Ok(())
}
