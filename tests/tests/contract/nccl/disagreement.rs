//! Ranks that call different operations: the simulator reports both, where hardware waits or
//! computes nonsense.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use curium_memory::DeviceBuffer;
use curium_nccl::{Communicator, CommunicatorOptions, Operation, Reduction, UniqueId};
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, on_simulator, resume_panic, simulator_test, skip};
use parking_lot::Mutex;

use super::{Rank, context, nccl, on_ranks_with};

/// Runs a call on rank 0, and then one on rank 1. Returns the errors of the second call and of the
/// first rank's wait.
fn errors(
    first: impl Fn(&mut Rank) -> curium_nccl::Result<()> + Sync,
    second: impl Fn(&mut Rank) -> curium_nccl::Result<()> + Sync,
) -> TestResult<Vec<String>> {
    if curium_tests::uses_cuda() {
        return Ok(Vec::new());
    }
    let barrier = Barrier::new(2);
    let errors = Mutex::new(Vec::new());
    on_ranks_with(
        2,
        CommunicatorOptions::new().with_timeout(Duration::from_secs(20)),
        |mut rank| {
            if rank.rank() == 0 {
                first(&mut rank)?;
            }
            barrier.wait();
            if rank.rank() == 1 {
                errors.lock().push(
                    second(&mut rank)
                        .expect_err("the ranks disagree")
                        .to_string(),
                );
            }
            barrier.wait();
            if rank.rank() == 0 {
                let error = rank
                    .communicator
                    .synchronize(&rank.stream)
                    .expect_err("the operation cannot run");
                errors.lock().push(error.to_string());
            }
            Ok(())
        },
    )?;
    Ok(errors.into_inner())
}

fn all_reduce(len: usize) -> impl Fn(&mut Rank) -> curium_nccl::Result<()> {
    move |rank| {
        let mut memory = rank.zeroed::<f32>(len);
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
    }
}

#[test]
fn other_collectives_are_named() -> TestResult {
    let errors = errors(
        |rank| {
            let mut memory = rank.zeroed::<f32>(8);
            rank.communicator
                .enqueue(&rank.stream, Operation::broadcast(&mut memory, 0))
        },
        all_reduce(8),
    )?;
    if let [call, wait] = &errors[..] {
        let expected = "ncclAllReduce: failed (ncclInvalidUsage = 5: the ranks disagree on operation 1 of the communicator: rank 1 calls \
                        ncclAllReduce(8 elements of ncclFloat32, ncclSum), but rank 0 called ncclBroadcast(8 elements of ncclFloat32, root \
                        0)); NCCL_DEBUG=WARN prints details";
        assert_eq!(call, expected);
        assert!(wait.contains("ncclInvalidUsage"), "{wait}");
    }
    Ok(())
}

#[test]
fn different_lengths_are_named() -> TestResult {
    let errors = errors(all_reduce(8), all_reduce(9))?;
    if let Some(call) = errors.first() {
        assert!(
            call.contains("rank 1 calls ncclAllReduce(9 elements")
                && call.contains("rank 0 called ncclAllReduce(8"),
            "{call}"
        );
    }
    Ok(())
}

#[test]
fn different_types_are_named() -> TestResult {
    let errors = errors(all_reduce(8), |rank| {
        let mut memory = rank.zeroed::<f64>(8);
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
    })?;
    if let Some(call) = errors.first() {
        assert!(
            call.contains("rank 1 calls ncclAllReduce(8 elements of ncclFloat64")
                && call.contains("rank 0 called ncclAllReduce(8 elements of ncclFloat32"),
            "{call}"
        );
    }
    Ok(())
}

#[test]
fn other_length_is_named() -> TestResult {
    let errors = errors(
        |rank| {
            let source = rank.zeroed::<f32>(4);
            rank.communicator.send(&rank.stream, &source, 1)
        },
        |rank| {
            let mut target = rank.zeroed::<f32>(5);
            rank.communicator.receive(&rank.stream, &mut target, 0)
        },
    )?;
    if let Some(call) = errors.first() {
        assert!(
            call.contains("rank 1 calls ncclRecv(5") && call.contains("rank 0 called ncclSend(4"),
            "{call}"
        );
    }
    Ok(())
}

/// Two ranks that send before they receive, outside of a group, wait for each other.
#[test]
fn exchange_outside_a_group_is_a_deadlock() -> TestResult {
    if curium_tests::uses_cuda() {
        return skip("needs the simulator");
    }
    let errors = Mutex::new(Vec::new());
    on_ranks_with(
        2,
        CommunicatorOptions::new().with_timeout(Duration::from_secs(20)),
        |mut rank| -> TestResult {
            let peer = 1 - rank.rank();
            let source = rank.zeroed::<f32>(4);
            let mut target = rank.zeroed::<f32>(4);
            let result = rank
                .communicator
                .send(&rank.stream, &source, peer)
                .and_then(|()| rank.communicator.receive(&rank.stream, &mut target, peer))
                .and_then(|()| rank.communicator.synchronize(&rank.stream));
            let error = result.expect_err("neither can end");
            errors.lock().push(error.to_string());
            Ok(())
        },
    )?;
    let errors = errors.into_inner();
    let reported = errors.iter().any(|error| {
        error.contains("deadlock: the operations can never run")
            && error.contains("rank 0 calls operation 1 of communicator")
            && error.contains("ncclSend(4 elements of ncclFloat32")
    });
    assert!(reported, "{errors:?}");
    Ok(())
}

/// The ranks use two communicators in opposite orders.
#[test]
fn deadlock_across_communicators_is_reported() -> TestResult {
    if curium_tests::uses_cuda() {
        return skip("needs the simulator");
    }
    on_simulator(Config::new().with_devices(2), |test, _| {
        let contexts: Vec<_> = (0..2)
            .map(|device| context(test.driver(), device))
            .collect();
        let mut pairs = [
            Communicator::all(&nccl(), &contexts)?,
            Communicator::all(&nccl(), &contexts)?,
        ];
        let mut failures = Vec::new();
        let mut buffers = Vec::new();
        for (rank, order) in [[0, 1], [1, 0]].into_iter().enumerate() {
            let stream = contexts[rank].stream()?;
            let mut memory = DeviceBuffer::<f32>::zeroed(&stream, 4)?;
            for communicator in order {
                let operation = Operation::all_reduce_in_place(&mut memory, Reduction::Sum);
                let result = pairs[communicator][rank].enqueue(&stream, operation);
                failures.extend(result.err().map(|error| error.to_string()));
            }
            buffers.push(memory);
        }
        let [failure] = &failures[..] else {
            panic!("the last call closes the circle: {failures:?}")
        };
        assert!(
            failure.contains("deadlock")
                && failure.contains("rank 1 calls operation 1 of communicator"),
            "{failure}"
        );
        for communicator in pairs.into_iter().flatten() {
            communicator.abort()?;
        }
        Ok(())
    })
}

#[simulator_test]
fn two_ranks_on_one_device_are_refused(driver: &TestDriver, _: &Simulator) -> TestResult {
    let id = UniqueId::new(&nccl())?;
    let driver = driver.driver();
    let errors: Vec<_> = thread::scope(|scope| {
        let start = |rank| {
            scope.spawn(move || {
                Communicator::new(&nccl(), &context(driver, 0), id, rank, 2).map(drop)
            })
        };
        [start(0), start(1)]
            .map(|thread| resume_panic(thread.join()))
            .into_iter()
            .collect()
    });
    let messages: Vec<_> = errors
        .into_iter()
        .map(|result| result.expect_err("one device has one rank").to_string())
        .collect();
    assert!(
        messages
            .iter()
            .any(|message| message.contains("duplicate GPU")),
        "{messages:?}"
    );
    Ok(())
}
