//! Communicators that grow, and their end in two steps.

use std::ffi::c_int;
use std::thread;
use std::time::{Duration, Instant};

use curium_nccl::sys::{ncclComm_t, ncclResult_t};
use curium_nccl::{Communicator, CommunicatorOptions, Error, Nccl, Reduction, UniqueId};
use curium_sim::Simulator;
use curium_sim_libraries::{NcclFault, live_communicators};
use curium_tests::{
    TestDriver, TestResult, driver_test, in_new_process, simulator_test, skip, uses_cuda,
};

use super::{Rank, context, nccl, on_devices, on_ranks_with, simulated_functions};

/// Reduces once, and ends the communicator.
fn reduce_and_close(mut rank: Rank) {
    let mut memory = rank.buffer(&[1_u32; 3]);
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)
        .expect("enqueue failed");
    assert_eq!(
        memory.to_vec().expect("read failed"),
        [rank.size() as u32; 3]
    );
    rank.close();
}

#[driver_test(on_devices(4))]
fn ranks_join_a_communicator_that_grows(driver: &TestDriver, size: usize) -> TestResult {
    let id = UniqueId::new(&nccl())?;
    let driver = driver.driver();
    let existing = size / 2;
    let (sender, receiver) = std::sync::mpsc::channel::<Option<UniqueId>>();
    thread::scope(|scope| -> TestResult<_> {
        for rank in 0..existing {
            let sender = sender.clone();
            scope.spawn(move || {
                let mut parent = Rank::new(
                    &context(driver, rank),
                    id,
                    rank,
                    existing,
                    CommunicatorOptions::new(),
                );
                let id = match (rank == 0)
                    .then(|| parent.communicator.growth_id())
                    .transpose()
                {
                    Err(Error::Missing(missing)) => {
                        assert_eq!(missing.function, "ncclCommGetUniqueId");
                        (0..size).for_each(|_| sender.send(None).expect("the test receives"));
                        return;
                    }
                    id => id.expect("the ranks are connected"),
                };
                if let Some(id) = id {
                    (existing..size)
                        .for_each(|_| sender.send(Some(id)).expect("the new ranks wait"));
                }
                let communicator = match parent.communicator.grow(size, id) {
                    Err(Error::Missing(_)) => return,
                    grown => grown.expect("the ranks connect"),
                };
                assert_eq!((communicator.rank(), communicator.size()), (rank, size));
                reduce_and_close(Rank {
                    communicator,
                    stream: parent.stream.clone(),
                });
                // The parent is still of use.
                reduce_and_close(parent);
            });
        }
        for rank in existing..size {
            let Some(id) = receiver.recv()? else {
                return Ok(());
            };
            scope.spawn(move || {
                let context = context(driver, rank);
                let communicator = Communicator::join(
                    &nccl(),
                    &context,
                    id,
                    rank,
                    size,
                    CommunicatorOptions::new(),
                );
                let communicator = communicator.expect("the ranks connect");
                assert_eq!((communicator.rank(), communicator.size()), (rank, size));
                reduce_and_close(Rank {
                    communicator,
                    stream: context.stream().expect("failed to create a stream"),
                });
            });
        }
        Ok(())
    })?;
    Ok(())
}

#[driver_test(on_ranks_with(2, CommunicatorOptions::new()))]
fn growth_without_new_ranks_is_refused(mut rank: Rank) -> TestResult {
    let refused = rank
        .communicator
        .grow(rank.size(), None)
        .expect_err("there is no new rank");
    assert_eq!(
        refused.to_string(),
        "Communicator::grow: no new ranks (2 ranks, of which 2 exist)"
    );
    let context = rank.communicator.context().clone();
    let id = UniqueId::from_bytes([0; 128]);
    let refused = Communicator::join(&nccl(), &context, id, 3, 3, CommunicatorOptions::new());
    let refused = refused.expect_err("there are three");
    assert_eq!(
        refused.to_string(),
        "Communicator::join: rank out of range (3 of 3 ranks)"
    );
    rank.close();
    Ok(())
}

#[test]
fn identifier_serves_once() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    on_devices(1, |driver, _| -> TestResult {
        let id = UniqueId::new(&nccl())?;
        let context = context(driver.driver(), 0);
        let first = Communicator::new(&nccl(), &context, id, 0, 1)?;
        let second = Communicator::new(&nccl(), &context, id, 0, 1)
            .expect_err("it was used")
            .to_string();
        assert!(second.contains("used before"), "{second}");
        first.close()?;
        Ok(())
    })?;
    Ok(())
}

/// A finalized communicator is destroyed once and has no operations.
#[test]
fn finalized_communicator_is_idle() -> TestResult {
    fn test() -> TestResult {
        for options in [
            CommunicatorOptions::new(),
            CommunicatorOptions::new().with_timeout(Duration::from_secs(60)),
        ] {
            on_ranks_with(2, options, |mut rank| {
                let mut memory = rank.buffer(&[1.0_f32; 64]);
                rank.communicator
                    .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
                rank.communicator.finalize()?;
                let later = rank
                    .communicator
                    .broadcast(&rank.stream, &mut memory, 0)
                    .expect_err("it is finalized");
                let Error::Finalized(finalized) = later else {
                    panic!("{later}")
                };
                assert_eq!(finalized.operation, "broadcast");
                let again = rank.communicator.finalize().expect_err("it was finalized");
                let expected = format!(
                    "Communicator::finalize: the communicator was finalized (rank {} of {}); it can only be destroyed or aborted",
                    rank.rank(),
                    rank.size()
                );
                assert_eq!(again.to_string(), expected);
                assert_eq!(memory.to_vec()?, [rank.size() as f32; 64]);
                if rank.rank() == 0 {
                    rank.close();
                } else {
                    drop(rank);
                }
                Ok(())
            })?;
        }
        if !uses_cuda() {
            assert_eq!(live_communicators(), 0);
        }
        Ok(())
    }

    in_new_process(test)
}

/// A future of finalizing resolves when the operations have run.
#[driver_test(on_ranks_with(2, CommunicatorOptions::new().with_timeout(Duration::from_secs(60))))]
fn finalize_future_resolves_after_the_work(mut rank: Rank) -> TestResult {
    let mut memory = rank.buffer(&[1.0_f32; 64]);
    if rank.rank() == 1 && !uses_cuda() {
        NcclFault::Delay(Duration::from_millis(200)).inject(rank.communicator.as_raw()?);
    }
    let start = Instant::now();
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    let finalizing = rank.communicator.start_finalize()?;
    pollster::block_on(finalizing)?;
    assert!(
        uses_cuda() || start.elapsed() >= Duration::from_millis(30),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(memory.to_vec()?, [rank.size() as f32; 64]);
    rank.close();
    Ok(())
}

/// Finalizing with a silent rank ends within the timeout.
#[test]
fn silent_rank_times_out() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    for is_future in [false, true] {
        on_ranks_with(
            2,
            CommunicatorOptions::new().with_timeout(Duration::from_secs(1)),
            |mut rank| -> TestResult {
                let mut memory = rank.buffer(&[1.0_f32; 64]);
                if rank.rank() == 1 {
                    NcclFault::Silence.inject(rank.communicator.as_raw()?);
                }
                rank.communicator
                    .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
                let finalized = if is_future {
                    pollster::block_on(rank.communicator.start_finalize()?)
                } else {
                    rank.communicator.finalize()
                };
                assert!(matches!(finalized, Err(Error::Timeout(_))), "{finalized:?}");
                rank.stream.synchronize()?;
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// A future of finalizing that is dropped leaves the rest to the end.
#[driver_test(on_ranks_with(2, CommunicatorOptions::new().with_timeout(Duration::from_secs(60))))]
fn dropped_finalize_future_completes_at_close(mut rank: Rank) -> TestResult {
    let mut memory = rank.buffer(&[1.0_f32; 64]);
    rank.communicator
        .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
    drop(rank.communicator.start_finalize()?);
    rank.close();
    Ok(())
}

/// A function of an NCCL that does not report the rank.
unsafe extern "C" fn without_rank(_: ncclComm_t, _: *mut c_int) -> ncclResult_t {
    ncclResult_t::ncclInternalError
}

/// Without the rank and the number of ranks, no length could be checked.
#[simulator_test]
fn split_without_a_rank_is_an_error(driver: &TestDriver, _: &Simulator) -> TestResult {
    let mut api = simulated_functions();
    api.ncclCommUserRank = Some(without_rank);
    // SAFETY: the other functions are those of the library for simulated devices.
    let library = unsafe { Nccl::from_api(api) }?;
    let id = UniqueId::new(&library)?;
    let context = context(driver.driver(), 0);
    let mut rank = Communicator::new(&library, &context, id, 0, 1)?;
    let split = rank.split(Some(0), 0);
    assert!(matches!(split, Err(Error::Call(_))), "{split:?}");
    Ok(())
}
