//! Ranks that fail: timeouts, asynchronous errors, and the abort from another thread.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{Function, Graph, observe_calls};
use curium_memory::DeviceBuffer;
use curium_nccl::sys::ncclResult_t;
use curium_nccl::{Communicator, CommunicatorOptions, Error, Operation, Reduction, UniqueId};
use curium_sim_libraries::NcclFault;
use curium_tests::During;

use super::{Rank, context, nccl, on_devices, on_ranks_with};

/// Returns a time, which is longer on hardware: the ranks take seconds to connect.
fn time(milliseconds: u64) -> Duration {
    Duration::from_millis(if curium_tests::uses_cuda() {
        5 * milliseconds
    } else {
        milliseconds
    })
}

fn with_timeout(milliseconds: u64) -> CommunicatorOptions {
    CommunicatorOptions::new().with_timeout(time(milliseconds))
}

#[test]
fn rank_that_calls_nothing_is_noticed_within_the_timeout_and_the_operation_is_named() {
    on_ranks_with(2, with_timeout(1500), |mut rank| {
        let mut memory = rank.buffer(&[1.0_f32; 64]);
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        rank.communicator
            .synchronize(&rank.stream)
            .expect("both ranks take part");
        if rank.rank() == 1 {
            return thread::sleep(time(3000));
        }
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        let start = Instant::now();
        let Err(Error::Timeout(error)) = rank.communicator.synchronize(&rank.stream) else {
            panic!("rank 1 is absent")
        };
        assert!(start.elapsed() < time(2900), "{:?}", start.elapsed());
        assert_eq!(
            &*error.outstanding,
            "operation 2, all_reduce of 64 elements"
        );
        assert_eq!((error.rank, error.size), (0, rank.size()));
        let later = rank
            .communicator
            .broadcast(&rank.stream, &mut memory, 0)
            .expect_err("it was aborted");
        let Error::Aborted(aborted) = later else {
            panic!("{later}")
        };
        assert_eq!((aborted.operation, aborted.rank), ("broadcast", 0));
        rank.stream
            .synchronize()
            .expect("the operations end when the communicator is aborted");
    });
}

#[test]
fn wait_outside_of_the_communicator_ends_when_an_operation_times_out() {
    on_ranks_with(2, with_timeout(1500), |mut rank| {
        let mut memory = rank.buffer(&[1.0_f32; 64]);
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        rank.communicator
            .synchronize(&rank.stream)
            .expect("both ranks take part");
        if rank.rank() == 1 {
            return thread::sleep(time(4800));
        }
        // Completed operations are no reason, however long ago they were called.
        thread::sleep(time(1700));
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        let start = Instant::now();
        memory
            .to_vec()
            .expect("the operation ends when the communicator is aborted");
        assert!(
            start.elapsed() > time(1400) && start.elapsed() < time(2900),
            "{:?}",
            start.elapsed()
        );
        let next = rank.communicator.broadcast(&rank.stream, &mut memory, 0);
        let Err(Error::Timeout(error)) = next else {
            panic!("it was aborted: {next:?}")
        };
        assert_eq!(
            (error.operation, &*error.outstanding),
            ("broadcast", "operation 2, all_reduce of 64 elements")
        );
        let later = rank
            .communicator
            .broadcast(&rank.stream, &mut memory, 0)
            .expect_err("it was aborted");
        let Error::Aborted(aborted) = later else {
            panic!("{later}")
        };
        assert_eq!((aborted.operation, aborted.rank), ("broadcast", 0));
    });
}

#[test]
fn rank_that_does_not_arrive_is_noticed_within_the_timeout() {
    on_devices(2, |driver, size| {
        let id = UniqueId::new(&nccl()).expect("NCCL has an interface");
        let context = context(driver.driver(), 0);
        let start = Instant::now();
        let error = Communicator::with_options(&nccl(), &context, id, 0, size, with_timeout(300));
        let Err(Error::Timeout(error)) = error else {
            panic!("rank 1 is absent")
        };
        assert_eq!(error.operation, "Communicator::with_options");
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{:?}",
            start.elapsed()
        );
    });
}

#[test]
fn watchdog_aborts_operations_that_wait() {
    on_ranks_with(2, with_timeout(60_000), |mut rank| {
        let mut memory = rank.buffer(&[1.0_f32; 64]);
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        rank.communicator
            .synchronize(&rank.stream)
            .expect("both ranks take part");
        let handle = rank.communicator.abort_handle();
        if rank.rank() == 1 {
            thread::sleep(Duration::from_secs(1));
            return handle.abort().expect("it is live");
        }
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        let watchdog = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            handle.abort()
        });
        rank.stream
            .synchronize()
            .expect("the operation ends when the communicator is aborted");
        watchdog
            .join()
            .expect("it does not panic")
            .expect("it is live");
        assert!(
            rank.communicator.close().is_ok(),
            "the aborted communicator is unusable"
        );
    });
}

#[test]
fn group_refuses_operations_after_another_thread_began_to_abort_and_the_abort_waits_for_its_end() {
    on_ranks_with(2, with_timeout(60_000), |mut rank| {
        let own = rank.rank();
        let (first, second) = (rank.buffer(&[1_u32; 8]), rank.buffer(&[2_u32; 8]));
        let (mut third, mut fourth) = (rank.buffer(&[0_u32; 8]), rank.buffer(&[0_u32; 8]));
        let handle = rank.communicator.abort_handle();
        let Rank {
            communicator,
            stream,
        } = &mut rank;
        let has_ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let mut aborting = None;
            let grouped = nccl().group(|group| {
                group.enqueue(communicator, stream, Operation::send(&first, own))?;
                group.enqueue(communicator, stream, Operation::receive(&mut third, own))?;
                aborting = Some(scope.spawn(|| {
                    let aborted = handle.abort();
                    assert!(
                        has_ended.load(Acquire),
                        "the abort did not wait for the group"
                    );
                    aborted
                }));
                thread::sleep(time(300));
                has_ended.store(true, Release);
                group.enqueue(communicator, stream, Operation::send(&second, own))?;
                group.enqueue(communicator, stream, Operation::receive(&mut fourth, own))
            });
            assert!(matches!(grouped, Err(Error::Aborted(_))), "{grouped:?}");
            let aborted = aborting.expect("the group called the closure").join();
            aborted.expect("it does not panic").expect("it is live");
        });
        rank.stream
            .synchronize()
            .expect("the operations end when the communicator is aborted");
    });
}

#[test]
fn abort_by_an_observer_during_an_operation_of_its_thread_is_refused() {
    on_ranks_with(2, CommunicatorOptions::new(), |mut rank| {
        let other = rank.stream.context().stream().expect("there is a stream");
        let mut memory = DeviceBuffer::from_slice(&other, &[1.0_f32; 64]).expect("memory suffices");
        let (handle, aborted) = (rank.communicator.abort_handle(), Arc::new(OnceLock::new()));
        let result = Arc::clone(&aborted);
        let abort = move || {
            result
                .set(handle.abort())
                .expect("the observer runs it once");
        };
        // The operation waits for the stream that wrote the memory.
        let observer = observe_calls(During::call_of(Function::cuStreamWaitEvent, abort));
        let enqueued =
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum);
        drop(observer);
        let aborted = aborted.get().expect("the observer was called");
        let Err(Error::Argument(error)) = aborted else {
            panic!("the communicator is in use: {aborted:?}")
        };
        assert_eq!(error.operation, "AbortHandle::abort");
        enqueued.expect("it was not aborted");
        assert_eq!(
            memory.to_vec().expect("both ranks take part"),
            vec![2.0; 64]
        );
        rank.close();
    });
}

#[test]
fn timeout_during_a_launch_of_a_graph_is_an_error_and_the_graph_can_be_dropped() {
    on_ranks_with(2, with_timeout(1500), |mut rank| {
        let mut memory = rank.buffer(&[1.0_f32; 64]);
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        rank.communicator
            .synchronize(&rank.stream)
            .expect("both ranks take part");
        let Rank {
            communicator,
            stream,
        } = &mut rank;
        let graph = Graph::capture(&communicator.context().clone(), |scope| {
            communicator.all_reduce_in_place(scope, &mut memory, Reduction::Sum)
        });
        let mut executable = graph
            .expect("it is captured")
            .instantiate()
            .expect("the graph is correct");
        executable.launch(stream).expect("it is enqueued");
        communicator
            .synchronize(stream)
            .expect("both ranks take part");
        if communicator.rank() == 1 {
            return thread::sleep(time(3000));
        }
        executable.launch(stream).expect("it is enqueued");
        let start = Instant::now();
        let waited = communicator.synchronize(stream);
        assert!(matches!(waited, Err(Error::Timeout(_))), "{waited:?}");
        assert!(start.elapsed() < time(2900), "{:?}", start.elapsed());
        stream
            .synchronize()
            .expect("the operations end when the communicator is aborted");
        let later = communicator
            .broadcast(stream, &mut memory, 0)
            .expect_err("it was aborted");
        assert!(matches!(later, Error::Aborted(_)), "{later}");
    });
}

#[test]
fn asynchronous_error_reaches_the_wait_of_the_other_ranks() {
    if curium_tests::uses_cuda() {
        return;
    }
    let connected = Barrier::new(2);
    on_ranks_with(2, with_timeout(20_000), |mut rank| {
        connected.wait();
        let mut memory = rank.buffer(&[1.0_f32; 64]);
        if rank.rank() == 1 {
            NcclFault::Error(ncclResult_t::ncclRemoteError)
                .inject(&mut rank.communicator)
                .expect("it is live");
            return;
        }
        let enqueued =
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum);
        let completed = enqueued.and_then(|()| rank.communicator.synchronize(&rank.stream));
        let Err(Error::Call(error)) = completed else {
            panic!("rank 1 failed: {completed:?}")
        };
        assert_eq!(error.code, ncclResult_t::ncclRemoteError);
    });
}

#[test]
fn slow_rank_delays_the_others() {
    if curium_tests::uses_cuda() {
        return;
    }
    on_ranks_with(2, CommunicatorOptions::new(), |mut rank| {
        if rank.rank() == 1 {
            NcclFault::Delay(Duration::from_millis(80))
                .inject(&mut rank.communicator)
                .expect("it is live");
        }
        let mut memory = rank.buffer(&[1.0_f32; 64]);
        let start = Instant::now();
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
            .expect("it is enqueued");
        assert_eq!(memory.to_vec().expect("it can be read"), [2.0; 64]);
        assert!(
            start.elapsed() >= Duration::from_millis(60),
            "{:?}",
            start.elapsed()
        );
        rank.close();
    });
}

#[test]
fn hundred_deaths_at_different_operations_hang_nobody_and_leak_nothing() {
    if curium_tests::uses_cuda() {
        return;
    }
    curium_tests::in_new_process(
        "nccl::failure::hundred_deaths_at_different_operations_hang_nobody_and_leak_nothing",
        || {
            // Those of a batch run at the same time, so that a timeout can be long enough for a busy machine.
            for batch in 0..4 {
                thread::scope(|scope| {
                    for death in 25 * batch..25 * (batch + 1) {
                        scope.spawn(move || die_at_operation(death % 5));
                    }
                });
            }
            assert_eq!(curium_sim_libraries::live_communicators(), 0);
        },
    );
}

/// Runs two ranks, of which rank 1 stops before an operation, and expects an error of this operation and of no earlier one.
fn die_at_operation(last: usize) {
    on_ranks_with(2, with_timeout(2_000), |mut rank| {
        let mut memory = rank.buffer(&[1.0_f32; 16]);
        for step in 0..=last {
            if rank.rank() == 1 && step == last {
                NcclFault::Silence
                    .inject(&mut rank.communicator)
                    .expect("it is live");
            }
            let enqueued =
                rank.communicator
                    .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum);
            let waited = enqueued.and_then(|()| rank.communicator.synchronize(&rank.stream));
            assert_eq!(
                waited.is_err(),
                step == last,
                "step {step} of {last}: {waited:?}"
            );
        }
    });
}
