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
use curium_tests::{During, TestDriver, TestResult, driver_test, resume_panic, skip};

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

/// A rank that calls nothing is noticed within the timeout and the operation is named.
#[driver_test(on_ranks_with(2, with_timeout(1500)))]
fn timeout_names_the_blocked_operation(mut rank: Rank) -> TestResult {
    let mut memory = rank.buffer(&[1.0_f32; 64]);
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    rank.communicator.synchronize(&rank.stream)?;
    if rank.rank() == 1 {
        return {
            thread::sleep(time(3000));
            Ok(())
        };
    }
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
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
    rank.stream.synchronize()?;
    Ok(())
}

/// Wait outside of the communicator ends when an operation times out.
#[driver_test(on_ranks_with(2, with_timeout(1500)))]
fn timeout_ends_external_waits(mut rank: Rank) -> TestResult {
    let mut memory = rank.buffer(&[1.0_f32; 64]);
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    rank.communicator.synchronize(&rank.stream)?;
    if rank.rank() == 1 {
        return {
            thread::sleep(time(4800));
            Ok(())
        };
    }
    // Completed operations are no reason, however long ago they were called.
    thread::sleep(time(1700));
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    let start = Instant::now();
    memory.to_vec()?;
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
    Ok(())
}

/// A rank that does not arrive is noticed within the timeout.
#[driver_test(on_devices(2))]
fn missing_rank_times_out(driver: &TestDriver, size: usize) -> TestResult {
    let id = UniqueId::new(&nccl())?;
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
    Ok(())
}

#[driver_test(on_ranks_with(2, with_timeout(60_000)))]
fn watchdog_aborts_operations_that_wait(mut rank: Rank) -> TestResult {
    let mut memory = rank.buffer(&[1.0_f32; 64]);
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    rank.communicator.synchronize(&rank.stream)?;
    let handle = rank.communicator.abort_handle();
    if rank.rank() == 1 {
        thread::sleep(Duration::from_secs(1));
        return {
            handle.abort()?;
            Ok(())
        };
    }
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    let watchdog = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        handle.abort()
    });
    rank.stream.synchronize()?;
    resume_panic(watchdog.join())?;
    assert!(
        rank.communicator.close().is_ok(),
        "the aborted communicator is unusable"
    );
    Ok(())
}

/// A group refuses operations after another thread began to abort and the abort waits for its end.
#[driver_test(on_ranks_with(2, with_timeout(60_000)))]
fn abort_waits_for_the_end_of_a_group(mut rank: Rank) -> TestResult {
    let own_rank = rank.rank();
    let first = rank.buffer(&[1_u32; 8]);
    let second = rank.buffer(&[2_u32; 8]);
    let mut third = rank.buffer(&[0_u32; 8]);
    let mut fourth = rank.buffer(&[0_u32; 8]);
    let handle = rank.communicator.abort_handle();
    let Rank {
        communicator,
        stream,
    } = &mut rank;
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| -> TestResult<_> {
        let mut aborting = None;
        let grouped = nccl().group(|group| {
            group.enqueue(communicator, stream, Operation::send(&first, own_rank))?;
            group.enqueue(
                communicator,
                stream,
                Operation::receive(&mut third, own_rank),
            )?;
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
            group.enqueue(communicator, stream, Operation::send(&second, own_rank))?;
            group.enqueue(
                communicator,
                stream,
                Operation::receive(&mut fourth, own_rank),
            )
        });
        assert!(matches!(grouped, Err(Error::Aborted(_))), "{grouped:?}");
        let aborted = aborting.ok_or("the closure was not called")?.join();
        aborted
            .expect("it does not panic")
            .expect("no live communicator");
        Ok(())
    })?;
    rank.stream.synchronize()?;
    Ok(())
}

/// An abort by an observer during an operation of its thread is refused.
#[driver_test(on_ranks_with(2, CommunicatorOptions::new()))]
fn abort_inside_an_observer_is_refused(mut rank: Rank) -> TestResult {
    let other = rank.stream.context().stream()?;
    let mut memory = DeviceBuffer::from_slice(&other, &[1.0_f32; 64])?;
    let handle = rank.communicator.abort_handle();
    let aborted = Arc::new(OnceLock::new());
    let result = Arc::clone(&aborted);
    // The operation waits for the stream that wrote the memory.
    let observer = observe_calls(During::call_of(Function::cuStreamWaitEvent, move || {
        result
            .set(handle.abort())
            .expect("the observer runs it once");
    }));
    let enqueued = rank
        .communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum);
    drop(observer);
    let aborted = aborted.get().ok_or("the observer was not called")?;
    let Err(Error::Argument(error)) = aborted else {
        panic!("the communicator is in use: {aborted:?}")
    };
    assert_eq!(error.operation, "AbortHandle::abort");
    enqueued?;
    assert_eq!(memory.to_vec()?, vec![2.0; 64]);
    rank.close();
    Ok(())
}

/// A timeout during a launch of a graph is an error and the graph can be dropped.
#[driver_test(on_ranks_with(2, with_timeout(1500)))]
fn graph_is_dropped_after_a_launch_timeout(mut rank: Rank) -> TestResult {
    let mut memory = rank.buffer(&[1.0_f32; 64]);
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    rank.communicator.synchronize(&rank.stream)?;
    let Rank {
        communicator,
        stream,
    } = &mut rank;
    let graph = Graph::capture(&communicator.context().clone(), |scope| {
        communicator.all_reduce_in_place(scope, &mut memory, Reduction::Sum)
    });
    let mut executable = graph?.instantiate()?;
    executable.launch(stream)?;
    communicator.synchronize(stream)?;
    if communicator.rank() == 1 {
        return {
            thread::sleep(time(3000));
            Ok(())
        };
    }
    executable.launch(stream)?;
    let start = Instant::now();
    let waited = communicator.synchronize(stream);
    assert!(matches!(waited, Err(Error::Timeout(_))), "{waited:?}");
    assert!(start.elapsed() < time(2900), "{:?}", start.elapsed());
    stream.synchronize()?;
    let later = communicator
        .broadcast(stream, &mut memory, 0)
        .expect_err("it was aborted");
    assert!(matches!(later, Error::Aborted(_)), "{later}");
    Ok(())
}

/// Asynchronous error reaches the wait of the other ranks.
#[test]
fn error_reaches_other_ranks() -> TestResult {
    if curium_tests::uses_cuda() {
        return skip("needs the simulator");
    }
    let connected = Barrier::new(2);
    on_ranks_with(2, with_timeout(20_000), |mut rank| -> TestResult {
        connected.wait();
        let mut memory = rank.buffer(&[1.0_f32; 64]);
        if rank.rank() == 1 {
            NcclFault::Error(ncclResult_t::ncclRemoteError).inject(rank.communicator.as_raw()?);
            return Ok(());
        }
        let enqueued =
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum);
        let completed = enqueued.and_then(|()| rank.communicator.synchronize(&rank.stream));
        let Err(Error::Call(error)) = completed else {
            panic!("rank 1 failed: {completed:?}")
        };
        assert_eq!(error.code, ncclResult_t::ncclRemoteError);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn slow_rank_delays_the_others() -> TestResult {
    if curium_tests::uses_cuda() {
        return skip("needs the simulator");
    }
    on_ranks_with(2, CommunicatorOptions::new(), |mut rank| -> TestResult {
        if rank.rank() == 1 {
            NcclFault::Delay(Duration::from_millis(80)).inject(rank.communicator.as_raw()?);
        }
        let mut memory = rank.buffer(&[1.0_f32; 64]);
        let start = Instant::now();
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
        assert_eq!(memory.to_vec()?, [2.0; 64]);
        assert!(
            start.elapsed() >= Duration::from_millis(60),
            "{:?}",
            start.elapsed()
        );
        rank.close();
        Ok(())
    })?;
    Ok(())
}

/// Hundred deaths at different operations hang nobody and leak nothing.
#[test]
fn rank_deaths_hang_nobody() {
    if curium_tests::uses_cuda() {
        return skip("needs the simulator");
    }
    curium_tests::in_new_process(|| {
        // Those of a batch run at the same time, so that a timeout can be long enough for a busy
        // machine.
        for batch in 0..4 {
            thread::scope(|scope| {
                for death in 25 * batch..25 * (batch + 1) {
                    scope.spawn(move || {
                        die_at_operation(death % 5).expect("only the injected death fails");
                    });
                }
            });
        }
        assert_eq!(curium_sim_libraries::live_communicators(), 0);
    });
}

/// Runs two ranks, of which rank 1 stops before an operation, and expects an error of this
/// operation and of no earlier one.
fn die_at_operation(last: usize) -> TestResult {
    on_ranks_with(2, with_timeout(2_000), |mut rank| {
        let mut memory = rank.buffer(&[1.0_f32; 16]);
        for step in 0..=last {
            if rank.rank() == 1 && step == last {
                NcclFault::Silence.inject(rank.communicator.as_raw()?);
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
        Ok(())
    })
}

/// A collective of different lengths per rank ends with an error, and the device stays usable.
#[test]
fn all_gather_with_a_silent_rank_times_out() -> TestResult {
    if curium_tests::uses_cuda() {
        return skip("needs the simulator");
    }
    on_ranks_with(2, with_timeout(1_500), |mut rank| {
        let source = rank.buffer(&[1.0_f32; 16]);
        let mut target = rank.zeroed::<f32>(32);
        if rank.rank() == 1 {
            NcclFault::Silence.inject(rank.communicator.as_raw()?);
        }
        let enqueued = rank
            .communicator
            .all_gather(&rank.stream, &source, &mut target);
        let waited = enqueued.and_then(|()| rank.communicator.synchronize(&rank.stream));
        assert!(waited.is_err(), "{waited:?}");
        assert_eq!(source.to_vec()?, [1.0; 16]);
        Ok(())
    })
}

/// A split that a rank does not call ends with a timeout.
#[test]
fn split_without_a_rank_times_out() -> TestResult {
    if curium_tests::uses_cuda() {
        return skip("needs the simulator");
    }
    on_ranks_with(2, with_timeout(500), |mut rank| {
        if rank.rank() == 0 {
            let split = rank.communicator.split(Some(0), 0).map(drop);
            assert!(matches!(split, Err(Error::Timeout(_))), "{split:?}");
        }
        Ok(())
    })
}
