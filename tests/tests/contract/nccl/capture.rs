//! Operations in graphs: every rank captures and launches them alike, and the graph keeps the communicator and leases the memory.

use curium_driver::Graph;
use curium_nccl::Reduction;

use super::{Rank, on_ranks};

#[test]
fn captured_operation_runs_at_each_launch() {
    on_ranks(4, |rank: &mut Rank| {
        let size = rank.size() as f32;
        let mut memory = rank.buffer(&[1.0_f32; 100]);
        // NCCL connects the ranks at the first operation, outside the capture.
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Max)
            .expect("it is enqueued");
        let Rank {
            communicator,
            stream,
        } = rank;
        let graph = Graph::capture(&communicator.context().clone(), |scope| {
            communicator.all_reduce_in_place(scope, &mut memory, Reduction::Sum)
        });
        let mut executable = graph
            .expect("it is captured")
            .instantiate()
            .expect("the graph is valid");
        assert_eq!(
            memory.to_vec().expect("it can be read"),
            [1.0; 100],
            "nothing runs while it is captured"
        );
        for _ in 0..3 {
            executable.launch(stream).expect("it can be launched");
        }
        assert_eq!(
            memory.to_vec().expect("it can be read"),
            [size * size * size; 100]
        );
        // Operations beside the graph keep their order.
        memory
            .as_slice_mut()
            .fill(2.0)
            .expect("the fill is enqueued");
        executable.launch(stream).expect("it can be launched");
        communicator
            .all_reduce_in_place(stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        assert_eq!(
            memory.to_vec().expect("it can be read"),
            [2.0 * size * size; 100]
        );
        drop(executable);
    });
}
