//! Ranks that call different operations: the simulator reports both, where hardware waits or computes nonsense.

use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use curium_nccl::{Communicator, CommunicatorOptions, Error, Operation, Reduction, UniqueId};
use curium_sim::Config;
use curium_tests::on_simulator;

use super::{Rank, context, nccl, on_ranks_with};

/// Runs a call on rank 0, and then one on rank 1. Returns the errors of the second call and of the first rank's wait.
fn errors(
    first: impl Fn(&mut Rank) -> curium_nccl::Result<()> + Sync,
    second: impl Fn(&mut Rank) -> curium_nccl::Result<()> + Sync,
) -> Vec<String> {
    if curium_tests::uses_cuda() {
        return Vec::new();
    }
    let (barrier, errors) = (Barrier::new(2), Mutex::new(Vec::new()));
    on_ranks_with(
        2,
        CommunicatorOptions::new().with_timeout(Duration::from_secs(20)),
        |mut rank| {
            if rank.rank() == 0 {
                first(&mut rank).expect("the first call is correct");
            }
            barrier.wait();
            if rank.rank() == 1 {
                errors.lock().unwrap_or_else(PoisonError::into_inner).push(
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
                errors
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(error.to_string());
            }
        },
    );
    errors.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn all_reduce(len: usize) -> impl Fn(&mut Rank) -> curium_nccl::Result<()> {
    move |rank| {
        let mut memory = rank.zeroed::<f32>(len);
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
    }
}

#[test]
fn different_collectives_are_named() {
    let errors = errors(
        |rank| {
            let mut memory = rank.zeroed::<f32>(8);
            rank.communicator
                .enqueue(&rank.stream, Operation::broadcast(&mut memory, 0))
        },
        all_reduce(8),
    );
    if let [call, wait] = &errors[..] {
        let expected = "ncclAllReduce: failed (ncclInvalidUsage = 5: the ranks disagree on operation 1 of the communicator: rank 1 calls \
                        ncclAllReduce(8 elements of ncclFloat32, ncclSum), but rank 0 called ncclBroadcast(8 elements of ncclFloat32, root \
                        0)); NCCL_DEBUG=WARN prints details";
        assert_eq!(call, expected);
        assert!(wait.contains("ncclInvalidUsage"), "{wait}");
    }
}

#[test]
fn different_lengths_are_named() {
    let errors = errors(all_reduce(8), all_reduce(9));
    if let Some(call) = errors.first() {
        assert!(
            call.contains("rank 1 calls ncclAllReduce(9 elements")
                && call.contains("rank 0 called ncclAllReduce(8"),
            "{call}"
        );
    }
}

#[test]
fn transfer_with_another_length_is_named() {
    let errors = errors(
        |rank| {
            let source = rank.zeroed::<f32>(4);
            rank.communicator.send(&rank.stream, &source, 1)
        },
        |rank| {
            let mut target = rank.zeroed::<f32>(5);
            rank.communicator.receive(&rank.stream, &mut target, 0)
        },
    );
    if let Some(call) = errors.first() {
        assert!(
            call.contains("rank 1 calls ncclRecv(5") && call.contains("rank 0 called ncclSend(4"),
            "{call}"
        );
    }
}

#[test]
fn exchange_outside_a_group_is_a_deadlock_that_the_timeout_ends() {
    if curium_tests::uses_cuda() {
        return;
    }
    on_ranks_with(
        2,
        CommunicatorOptions::new().with_timeout(Duration::from_secs(1)),
        |mut rank| {
            let peer = 1 - rank.rank();
            let (source, mut target) = (rank.zeroed::<f32>(4), rank.zeroed::<f32>(4));
            rank.communicator
                .send(&rank.stream, &source, peer)
                .expect("it is enqueued");
            rank.communicator
                .receive(&rank.stream, &mut target, peer)
                .expect("it is enqueued");
            let Err(Error::Timeout(error)) = rank.communicator.synchronize(&rank.stream) else {
                panic!("both wait")
            };
            assert_eq!(&*error.outstanding, "operation 1, send of 4 elements");
        },
    );
}

#[test]
fn two_ranks_on_one_device_are_refused() {
    on_simulator(Config::new(), |driver, _| {
        let (id, driver) = (
            UniqueId::new(&nccl()).expect("it is simulated"),
            driver.driver(),
        );
        let errors: Vec<_> = thread::scope(|scope| {
            let start = |rank| {
                scope.spawn(move || {
                    Communicator::new(&nccl(), &context(driver, 0), id, rank, 2).map(drop)
                })
            };
            [start(0), start(1)]
                .map(|thread| thread.join().expect("it does not panic"))
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
    });
}
