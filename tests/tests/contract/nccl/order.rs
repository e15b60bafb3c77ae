//! Operations are ordered with the work of other streams on the same memory.
//!
//! A gate holds the earlier work back, so that an operation that does not wait for it runs first and is seen.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use curium_memory::DeviceBuffer;
use curium_nccl::{CommunicatorOptions, Reduction};
use curium_tests::Gate;

use super::{Rank, on_ranks, on_ranks_with};

const LEN: usize = 1000;

/// The time in which an operation that does not wait would run.
const TIME: Duration = Duration::from_millis(30);

#[test]
fn operation_waits_for_a_write_on_another_stream() {
    on_ranks(2, |rank: &mut Rank| {
        let other = rank
            .communicator
            .context()
            .stream()
            .expect("there is a stream");
        // The buffer's own stream is the other one: accesses on its own stream need no record.
        let mut memory = DeviceBuffer::<f32>::zeroed(&other, LEN).expect("memory suffices");
        // The ranks connect.
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        other.synchronize().expect("the work completes");
        for round in 1..=5 {
            let gate = Gate::on(&other);
            memory
                .as_slice_mut()
                .fill_on(&other, round as f32)
                .expect("the fill is enqueued");
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
                .expect("it is enqueued");
            thread::sleep(TIME);
            gate.open();
            let sum = memory
                .as_slice()
                .to_vec_on(&rank.stream)
                .expect("it can be read");
            assert_eq!(sum, [(round * rank.size()) as f32; LEN], "round {round}");
        }
    });
}

#[test]
fn operation_waits_for_a_read_of_its_target_on_another_stream() {
    on_ranks(2, |rank: &mut Rank| {
        let other = rank
            .communicator
            .context()
            .stream()
            .expect("there is a stream");
        let mut copy = DeviceBuffer::<f32>::zeroed(&other, LEN).expect("memory suffices");
        let (source, mut target) = (rank.buffer(&[1.0_f32; LEN]), rank.buffer(&[5.0_f32; LEN]));
        rank.communicator
            .all_reduce(&rank.stream, &source, &mut target, Reduction::Max)
            .expect("it is enqueued");
        target
            .as_slice_mut()
            .fill(5.0)
            .expect("the fill is enqueued");
        rank.stream.synchronize().expect("the work completes");
        let gate = Gate::on(&other);
        copy.as_slice_mut()
            .copy_from_device_on(&other, &target)
            .expect("the copy is enqueued");
        rank.communicator
            .all_reduce(&rank.stream, &source, &mut target, Reduction::Sum)
            .expect("it is enqueued");
        thread::sleep(TIME);
        gate.open();
        assert_eq!(
            copy.to_vec().expect("it can be read"),
            [5.0; LEN],
            "the copy reads the previous values"
        );
        assert_eq!(
            target.to_vec().expect("it can be read"),
            [rank.size() as f32; LEN]
        );
    });
}

#[test]
fn later_work_on_another_stream_waits_for_the_operation() {
    let held = Barrier::new(2);
    on_ranks_with(2, CommunicatorOptions::new(), |mut rank| {
        let other = rank
            .communicator
            .context()
            .stream()
            .expect("there is a stream");
        let (mut copy, mut results) = (
            DeviceBuffer::<f32>::zeroed(&other, LEN).expect("memory suffices"),
            Vec::new(),
        );
        // Only the accesses on streams other than the buffer's own are recorded.
        for own in [rank.stream.clone(), other.clone()] {
            let mut memory =
                DeviceBuffer::from_slice(&own, &[1.0_f32; LEN]).expect("memory suffices");
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Max)
                .expect("it is enqueued");
            rank.communicator
                .synchronize(&rank.stream)
                .expect("the work completes");
            // Rank 1 holds the operation back on every rank.
            let gate = (rank.rank() == 1).then(|| Gate::on(&rank.stream));
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
                .expect("it is enqueued");
            copy.as_slice_mut()
                .copy_from_device_on(&other, &memory)
                .expect("the copy is enqueued");
            memory
                .as_slice_mut()
                .fill_on(&other, 7.0)
                .expect("the fill is enqueued");
            thread::sleep(TIME);
            held.wait();
            drop(gate);
            results.push([&copy, &memory].map(|memory| memory.to_vec().expect("it can be read")));
        }
        for [copied, filled] in results {
            assert_eq!(copied, [2.0; LEN], "the copy waits for the operation");
            assert_eq!(filled, [7.0; LEN], "so does the fill");
        }
        rank.close();
    });
}

#[test]
fn source_is_read_after_an_earlier_write_and_before_a_later_one_on_another_stream() {
    on_ranks(2, |rank: &mut Rank| {
        let other = rank
            .communicator
            .context()
            .stream()
            .expect("there is a stream");
        let mut source = DeviceBuffer::<f32>::zeroed(&other, LEN).expect("memory suffices");
        let mut target = rank.zeroed::<f32>(LEN);
        rank.communicator
            .all_reduce(&rank.stream, &source, &mut target, Reduction::Sum)
            .expect("it is enqueued");
        rank.stream.synchronize().expect("the work completes");
        let gate = Gate::on(&other);
        source
            .as_slice_mut()
            .fill(3.0)
            .expect("the fill is enqueued");
        rank.communicator
            .all_reduce(&rank.stream, &source, &mut target, Reduction::Sum)
            .expect("it is enqueued");
        thread::sleep(TIME);
        gate.open();
        let sum = [3.0 * rank.size() as f32; LEN];
        assert_eq!(
            target.to_vec().expect("it can be read"),
            sum,
            "it waits for the fill"
        );
        let gate = Gate::on(&rank.stream);
        rank.communicator
            .all_reduce(&rank.stream, &source, &mut target, Reduction::Sum)
            .expect("it is enqueued");
        source
            .as_slice_mut()
            .fill(7.0)
            .expect("the fill is enqueued");
        thread::sleep(TIME);
        gate.open();
        assert_eq!(
            target.to_vec().expect("it can be read"),
            sum,
            "the fill waits for it"
        );
        assert_eq!(source.to_vec().expect("it can be read"), [7.0; LEN]);
    });
}

#[test]
fn operations_of_a_group_wait_for_work_on_other_streams_and_later_work_waits_for_them() {
    on_ranks(2, |rank: &mut Rank| {
        let other = rank
            .communicator
            .context()
            .stream()
            .expect("there is a stream");
        let mut memory = DeviceBuffer::<f32>::zeroed(&other, LEN).expect("memory suffices");
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        other.synchronize().expect("the work completes");
        let gate = Gate::on(&other);
        memory
            .as_slice_mut()
            .fill_on(&other, 3.0)
            .expect("the fill is enqueued");
        let (
            size,
            Rank {
                communicator,
                stream,
            },
        ) = (rank.size(), rank);
        let operation = curium_nccl::Operation::all_reduce_in_place(&mut memory, Reduction::Sum);
        super::nccl()
            .group(|group| group.enqueue(communicator, stream, operation))
            .expect("the group is started");
        thread::sleep(TIME);
        gate.open();
        let sum = memory.as_slice().to_vec_on(&other).expect("it can be read");
        assert_eq!(sum, [3.0 * size as f32; LEN]);
    });
}
