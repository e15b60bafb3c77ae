//! Operations are ordered with the work of other streams on the same memory.
//!
//! A gate holds the earlier work back, so that an operation that does not wait for it runs first
//! and is seen.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use curium_memory::DeviceBuffer;
use curium_nccl::{CommunicatorOptions, Reduction};
use curium_tests::{Gate, TestResult, driver_test};

use super::{Rank, on_ranks, on_ranks_with};

const LEN: usize = 1000;

/// The time in which an operation that does not wait would run.
const TIME: Duration = Duration::from_millis(30);

#[driver_test(on_ranks(2))]
fn operation_waits_for_a_write_on_another_stream(rank: &mut Rank) -> TestResult {
    let other = rank.communicator.context().stream()?;
    // The buffer's own stream is the other one: accesses on its own stream need no record.
    let mut memory = DeviceBuffer::<f32>::zeroed(&other, LEN)?;
    // The ranks connect.
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    other.synchronize()?;
    for round in 1..=5 {
        let gate = Gate::on(&other);
        memory.on_mut(&other).fill(round as f32)?;
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
        thread::sleep(TIME);
        gate.open();
        let sum = memory.on(&rank.stream).to_vec()?;
        assert_eq!(sum, [(round * rank.size()) as f32; LEN], "round {round}");
    }
    Ok(())
}

/// An operation waits for a read of its target on another stream.
#[driver_test(on_ranks(2))]
fn operation_waits_for_readers_on_other_streams(rank: &mut Rank) -> TestResult {
    let other = rank.communicator.context().stream()?;
    let mut copy = DeviceBuffer::<f32>::zeroed(&other, LEN)?;
    let source = rank.buffer(&[1.0_f32; LEN]);
    let mut target = rank.buffer(&[5.0_f32; LEN]);
    rank.communicator
        .all_reduce(&rank.stream, &source, &mut target, Reduction::Max)?;
    target.fill(5.0)?;
    rank.stream.synchronize()?;
    let gate = Gate::on(&other);
    copy.on_mut(&other).copy_from_device(&target)?;
    rank.communicator
        .all_reduce(&rank.stream, &source, &mut target, Reduction::Sum)?;
    thread::sleep(TIME);
    gate.open();
    assert_eq!(
        copy.to_vec()?,
        [5.0; LEN],
        "the copy reads the previous values"
    );
    assert_eq!(target.to_vec()?, [rank.size() as f32; LEN]);
    Ok(())
}

/// A later work on another stream waits for the operation.
#[test]
fn later_work_waits() -> TestResult {
    let held = Barrier::new(2);
    on_ranks_with(2, CommunicatorOptions::new(), |mut rank| -> TestResult {
        let other = rank.communicator.context().stream()?;
        let mut copy = DeviceBuffer::<f32>::zeroed(&other, LEN)?;
        let mut results = Vec::new();
        // Only the accesses on streams other than the buffer's own are recorded.
        for own in [rank.stream.clone(), other.clone()] {
            let mut memory = DeviceBuffer::from_slice(&own, &[1.0_f32; LEN])?;
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Max)?;
            rank.communicator.synchronize(&rank.stream)?;
            // Rank 1 holds the operation back on every rank.
            let gate = (rank.rank() == 1).then(|| Gate::on(&rank.stream));
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
            copy.on_mut(&other).copy_from_device(&memory)?;
            memory.on_mut(&other).fill(7.0)?;
            thread::sleep(TIME);
            held.wait();
            drop(gate);
            results.push([&copy, &memory].map(|memory| memory.to_vec().expect("read failed")));
        }
        for [copied, filled] in results {
            assert_eq!(copied, [2.0; LEN], "the copy waits for the operation");
            assert_eq!(filled, [7.0; LEN], "so does the fill");
        }
        rank.close();
        Ok(())
    })?;
    Ok(())
}

/// A source is read after an earlier write and before a later one on another stream.
#[driver_test(on_ranks(2))]
fn source_read_is_ordered_between_writes(rank: &mut Rank) -> TestResult {
    let other = rank.communicator.context().stream()?;
    let mut source = DeviceBuffer::<f32>::zeroed(&other, LEN)?;
    let mut target = rank.zeroed::<f32>(LEN);
    rank.communicator
        .all_reduce(&rank.stream, &source, &mut target, Reduction::Sum)?;
    rank.stream.synchronize()?;
    let gate = Gate::on(&other);
    source.fill(3.0)?;
    rank.communicator
        .all_reduce(&rank.stream, &source, &mut target, Reduction::Sum)?;
    thread::sleep(TIME);
    gate.open();
    let sum = [3.0 * rank.size() as f32; LEN];
    assert_eq!(target.to_vec()?, sum, "it waits for the fill");
    let gate = Gate::on(&rank.stream);
    rank.communicator
        .all_reduce(&rank.stream, &source, &mut target, Reduction::Sum)?;
    source.fill(7.0)?;
    thread::sleep(TIME);
    gate.open();
    assert_eq!(target.to_vec()?, sum, "the fill waits for it");
    assert_eq!(source.to_vec()?, [7.0; LEN]);
    Ok(())
}

/// Operations of a group wait for work on other streams and later work waits for them.
#[driver_test(on_ranks(2))]
fn group_is_ordered_with_other_streams(rank: &mut Rank) -> TestResult {
    let other = rank.communicator.context().stream()?;
    let mut memory = DeviceBuffer::<f32>::zeroed(&other, LEN)?;
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    other.synchronize()?;
    let gate = Gate::on(&other);
    memory.on_mut(&other).fill(3.0)?;
    let size = rank.size();
    let Rank {
        communicator,
        stream,
    } = rank;
    let operation = curium_nccl::Operation::all_reduce_in_place(&mut memory, Reduction::Sum);
    super::nccl().group(|group| group.enqueue(communicator, stream, operation))?;
    thread::sleep(TIME);
    gate.open();
    let sum = memory.on(&other).to_vec()?;
    assert_eq!(sum, [3.0 * size as f32; LEN]);
    Ok(())
}
