//! Registered memory: it is deregistered once, after the operations on it, and lives at least as
//! long.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{Function, Graph, observe_calls};
use curium_memory::{DeviceBuffer, DeviceSlice};
use curium_nccl::sys::ncclResult_t;
use curium_nccl::{
    Communicator, CommunicatorOptions, Error, Nccl, NcclMemory, Reduction, Returned, UniqueId,
};
use curium_sim::{Config, Simulator};
use curium_sim_libraries::{NcclFault, live_registrations};
use curium_tests::{
    During, TestDriver, TestResult, driver_test, in_new_process, simulator_test, skip, uses_cuda,
};
use parking_lot::Mutex;

use super::{Rank, context, nccl, on_devices, on_ranks, on_ranks_with, simulated_functions};

type Buffer = DeviceBuffer<f32, NcclMemory>;

impl Rank {
    fn own_memory(&self, len: usize, value: f32) -> TestResult<Buffer> {
        let mut buffer = DeviceBuffer::zeroed_in(&self.stream, len, nccl().memory())?;
        buffer.fill(value)?;
        Ok(buffer)
    }

    /// Checks that the memory is reduced in place.
    fn check(&mut self, memory: &mut DeviceSlice<f32>) {
        let size = self.size() as f32;
        for round in 1..=3 {
            self.communicator
                .all_reduce_in_place(&self.stream, memory, Reduction::Sum)
                .expect("enqueue failed");
            let values = memory.to_vec().expect("read failed");
            assert!(
                values.iter().all(|value| *value == size.powi(round)),
                "round {round}: {:?}",
                &values[..4]
            );
        }
    }
}

/// Returns `None` if the library is too old for the function.
fn unless_missing<T, B>(result: Result<T, Returned<B>>, function: &str) -> TestResult<Option<T>> {
    match result {
        Err(Returned {
            error: Error::Missing(missing),
            ..
        }) => {
            assert_eq!(missing.function, function);
            Ok(None)
        }
        result => Ok(Some(result?)),
    }
}

/// An observer uses the communicator while its thread deregisters memory.
#[driver_test(on_ranks_with(2, CommunicatorOptions::new()))]
fn observer_uses_a_deregistering_communicator(mut rank: Rank) -> TestResult {
    let memory = rank.own_memory(1 << 18, 1.0)?;
    let Some(mut memory) = unless_missing(rank.communicator.register(memory), "ncclCommRegister")?
    else {
        return Ok(());
    };
    rank.check(&mut memory);
    let rank = Arc::new(Mutex::new(rank));
    let reduced = Arc::new(OnceLock::new());
    let action = {
        let rank = Arc::clone(&rank);
        let reduced = Arc::clone(&reduced);
        move || {
            let rank = &mut *rank.lock();
            let mut other = rank.buffer(&[1_u32; 8]);
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut other, Reduction::Sum)
                .expect("enqueue failed");
            reduced
                .set(other.to_vec().expect("read failed"))
                .expect("the observer runs it once");
        }
    };
    let observer = observe_calls(During::call_of(Function::cuStreamQuery, action));
    drop(memory.into_inner()?);
    drop(observer);
    assert_eq!(
        reduced.get(),
        Some(&vec![2_u32; 8]),
        "the wait of the deregistration queries the stream"
    );
    Ok(())
}

/// A failure that an observer notices aborts the communicator after the call of its thread.
#[test]
fn observer_failure_aborts() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    on_ranks_with(1, CommunicatorOptions::new(), |mut rank| -> TestResult {
        let memory = rank.own_memory(1 << 18, 1.0)?;
        let memory = rank.communicator.register(memory)?;
        rank.stream.synchronize()?;
        let rank = Arc::new(Mutex::new(rank));
        let noticed = Arc::new(OnceLock::new());
        let action = {
            let rank = Arc::clone(&rank);
            let noticed = Arc::clone(&noticed);
            move || {
                let Rank {
                    communicator,
                    stream,
                } = &mut *rank.lock();
                let raw = communicator.as_raw().expect("no live communicator");
                NcclFault::Error(ncclResult_t::ncclRemoteError).inject(raw);
                let other = stream
                    .context()
                    .stream()
                    .expect("failed to create a stream");
                let work = other.launch_host_function(|| thread::sleep(Duration::from_millis(100)));
                let _waiter = work.expect("enqueue failed");
                noticed
                    .set(communicator.synchronize(&other))
                    .expect("the observer runs it once");
            }
        };
        // The deregistration has no reason to wait after this query.
        let observer = observe_calls(During::end_of(Function::cuStreamQuery, action));
        memory.into_inner()?;
        drop(observer);
        let noticed = noticed
            .get()
            .ok_or("deregistration did not query the stream")?;
        assert!(matches!(noticed, Err(Error::Call(_))), "{noticed:?}");
        let Rank {
            communicator,
            stream,
        } = &mut *rank.lock();
        let mut memory = DeviceBuffer::<u32>::zeroed(stream, 8)?;
        let later = communicator.all_reduce_in_place(stream, &mut memory, Reduction::Sum);
        assert!(matches!(later, Err(Error::Aborted(_))), "{later:?}");
        Ok(())
    })?;
    Ok(())
}

/// A failure in a group aborts the communicator after the group.
#[test]
fn group_failure_aborts() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    // Not `on_ranks`: the memory is leaked, because NCCL may still use it.
    let simulator = Simulator::new(Config::new())?;
    let context = context(&simulator.driver()?, 0);
    let id = UniqueId::new(&nccl())?;
    let mut rank = Rank::new(&context, id, 0, 1, CommunicatorOptions::new());
    let memory = rank.own_memory(1 << 18, 1.0)?;
    let memory = rank.communicator.register(memory)?;
    let Rank {
        communicator,
        stream,
    } = &mut rank;
    NcclFault::Error(ncclResult_t::ncclRemoteError).inject(communicator.as_raw()?);
    let work = stream.launch_host_function(|| thread::sleep(Duration::from_millis(100)));
    let _waiter = work?;
    let grouped = nccl().group(|_| {
        // It waits for the stream, and notices the failure.
        drop(memory);
        communicator.as_raw().map(|_| ())
    });
    grouped?;
    stream.synchronize()?;
    communicator.synchronize(stream)?;
    let mut memory = DeviceBuffer::<u32>::zeroed(stream, 8)?;
    let later = communicator.all_reduce_in_place(stream, &mut memory, Reduction::Sum);
    assert!(matches!(later, Err(Error::Aborted(_))), "{later:?}");
    Ok(())
}

#[driver_test(on_ranks(2))]
fn registered_buffer_is_an_operand_and_is_returned(rank: &mut Rank) -> TestResult {
    let memory = rank.own_memory(1 << 18, 1.0)?;
    let address = memory.as_pointer().as_raw();
    let Some(mut memory) = unless_missing(rank.communicator.register(memory), "ncclCommRegister")?
    else {
        return Ok(());
    };
    rank.check(&mut memory);
    let memory = memory.into_inner()?;
    assert_eq!(memory.as_pointer().as_raw(), address);
    // Again, and dropped.
    let Some(mut memory) = unless_missing(rank.communicator.register(memory), "ncclCommRegister")?
    else {
        return Ok(());
    };
    memory.fill(1.0)?;
    rank.check(&mut memory);
    Ok(())
}

#[driver_test(on_ranks(2))]
fn window_is_an_operand_and_is_returned(rank: &mut Rank) -> TestResult {
    let memory = rank.own_memory(1 << 20, 1.0)?;
    let registered = rank.communicator.register_window(memory);
    let Some(mut memory) = unless_missing(registered, "ncclCommWindowRegister")? else {
        return Ok(());
    };
    rank.check(&mut memory);
    assert_eq!(memory.into_inner()?.len(), 1 << 20);
    Ok(())
}

#[driver_test(on_ranks(2))]
fn every_memory_kind_is_registered(rank: &mut Rank) -> TestResult {
    let memory = rank.buffer(&[1.0_f32; 1000]);
    let Some(mut memory) = unless_missing(rank.communicator.register(memory), "ncclCommRegister")?
    else {
        return Ok(());
    };
    rank.check(&mut memory);
    Ok(())
}

/// A library without the function returns the memory with a typed error.
#[simulator_test]
fn missing_registration_returns_the_memory(driver: &TestDriver, _: &Simulator) -> TestResult {
    let mut api = simulated_functions();
    (
        api.ncclCommRegister,
        api.ncclCommWindowRegister,
        api.ncclMemAlloc,
    ) = (None, None, None);
    // SAFETY: the functions are those of the library for simulated devices.
    let old = unsafe { Nccl::from_api(api) }?;
    let context = context(driver.driver(), 0);
    let stream = context.stream()?;
    let id = UniqueId::new(&old)?;
    let mut rank = Communicator::new(&old, &context, id, 0, 1)?;
    let memory = DeviceBuffer::from_slice(&stream, &[3.0_f32; 4])?;
    let Returned {
        value: memory,
        error,
    } = rank.register(memory).expect_err("the function is missing");
    assert_eq!(
        error.to_string(),
        "ncclCommRegister: missing function (introduced in NCCL 2.19); use a newer NCCL"
    );
    assert_eq!(memory.to_vec()?, [3.0; 4]);
    let allocated = DeviceBuffer::<f32, _>::zeroed_in(&stream, 4, old.memory())
        .expect_err("it cannot allocate");
    assert!(
        allocated
            .to_string()
            .contains("ncclMemAlloc: missing function"),
        "{allocated}"
    );
    Ok(())
}

/// Memory that cannot be registered is refused and returned.
#[driver_test(on_devices(2))]
fn unregistrable_memory_is_returned(driver: &TestDriver, size: usize) -> TestResult {
    let contexts: Vec<_> = (0..size)
        .map(|device| context(driver.driver(), device))
        .collect();
    let mut ranks = Communicator::all(&nccl(), &contexts)?;
    let streams: Vec<_> = contexts
        .iter()
        .map(curium_driver::Context::stream)
        .collect::<Result<_, _>>()?;
    let other = DeviceBuffer::<f32>::zeroed(&streams[1], 8)?;
    let refused = ranks[0].register(other).expect_err("it is another device");
    let expected = "Communicator::register: the stream belongs to another device (1, the communicator is on 0)";
    assert_eq!(refused.to_string(), expected);
    assert_eq!(refused.value.len(), 8);
    // Memory of a pool has an address that is a multiple of 256 bytes at least; one of several is
    // not a multiple of 4096.
    let unaligned =
        (0..16).map(|_| DeviceBuffer::<f32>::zeroed(&streams[0], 64).expect("allocation failed"));
    let unaligned: Vec<_> = unaligned.collect();
    let unaligned = unaligned
        .into_iter()
        .find(|buffer| buffer.as_pointer().as_raw() % 4096 != 0);
    let refused = ranks[0]
        .register_window(unaligned.ok_or("no unaligned buffer")?)
        .expect_err("it is unaligned");
    assert!(
        refused.to_string().contains("not a multiple of 4096 bytes"),
        "{refused}"
    );
    Ok(())
}

#[test]
fn registrations_end_once() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    in_new_process(|| -> TestResult {
        on_ranks(2, |rank: &mut Rank| -> TestResult {
            let registered = rank.communicator.register(rank.own_memory(64, 1.0)?)?;
            assert!(live_registrations() > 0);
            drop(registered);
            // Within a group, whose communicator is in use.
            let registered = rank.communicator.register(rank.own_memory(64, 1.0)?)?;
            let mut memory = rank.buffer(&[1.0_f32; 8]);
            let Rank {
                communicator,
                stream,
            } = rank;
            let operation =
                curium_nccl::Operation::all_reduce_in_place(&mut memory, Reduction::Sum);
            let grouped = nccl().group(|group| {
                group.enqueue(communicator, stream, operation)?;
                drop(registered);
                Ok(())
            });
            grouped?;
            Ok(())
        })?;
        assert_eq!(live_registrations(), 0);
        // The communicator first: it lives until the memory is dropped.
        on_ranks_with(2, CommunicatorOptions::new(), |mut rank| -> TestResult {
            let registered = rank.communicator.register(rank.own_memory(64, 1.0)?)?;
            rank.communicator.close()?;
            drop(registered);
            Ok(())
        })?;
        assert_eq!(
            (
                live_registrations(),
                curium_sim_libraries::live_communicators()
            ),
            (0, 0)
        );
        // Abort: the library ends the registration.
        on_ranks_with(2, CommunicatorOptions::new(), |mut rank| -> TestResult {
            let registered = rank.communicator.register(rank.own_memory(64, 2.0)?)?;
            rank.communicator.abort()?;
            let memory = registered.into_inner()?;
            assert_eq!(memory.to_vec()?, [2.0; 64]);
            Ok(())
        })?;
        assert_eq!(
            (
                live_registrations(),
                curium_sim_libraries::live_communicators()
            ),
            (0, 0)
        );
        Ok(())
    })?;
    Ok(())
}

#[test]
fn deregistration_waits() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    on_ranks(2, |rank: &mut Rank| -> TestResult {
        let mut memory = rank.communicator.register(rank.own_memory(64, 1.0)?)?;
        if rank.rank() == 1 {
            NcclFault::Delay(Duration::from_millis(80)).inject(rank.communicator.as_raw()?);
        }
        let start = Instant::now();
        rank.communicator
            .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
        let memory = memory.into_inner()?;
        assert!(
            start.elapsed() >= Duration::from_millis(60),
            "{:?}",
            start.elapsed()
        );
        assert_eq!(memory.to_vec()?, [2.0; 64]);
        Ok(())
    })?;
    Ok(())
}

/// Deregistration ends within the timeout if a rank is silent.
#[test]
fn deregistration_times_out() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    on_ranks_with(
        2,
        CommunicatorOptions::new().with_timeout(Duration::from_secs(1)),
        |mut rank| -> TestResult {
            let mut memory = rank.communicator.register(rank.own_memory(64, 1.0)?)?;
            if rank.rank() == 1 {
                NcclFault::Silence.inject(rank.communicator.as_raw()?);
            }
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Sum)?;
            let Err(Error::Timeout(error)) = memory.into_inner() else {
                panic!("rank 1 sends nothing")
            };
            assert_eq!(
                &*error.outstanding,
                "operation 1, all_reduce of 64 elements"
            );
            let later = rank
                .communicator
                .synchronize(&rank.stream)
                .expect_err("it was aborted");
            assert!(matches!(later, Error::Aborted(_)), "{later}");
            thread::sleep(Duration::from_millis(50));
            Ok(())
        },
    )?;
    Ok(())
}

#[test]
fn graph_keeps_the_registration() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    in_new_process(|| -> TestResult {
        on_ranks(2, |rank: &mut Rank| -> TestResult {
            let mut memory = rank.communicator.register(rank.own_memory(64, 1.0)?)?;
            rank.communicator
                .all_reduce_in_place(&rank.stream, &mut memory, Reduction::Max)?;
            let mut result = rank.zeroed::<f32>(64);
            let Rank {
                communicator,
                stream,
            } = rank;
            let graph = Graph::capture(&communicator.context().clone(), |scope| {
                communicator.all_reduce(scope, &memory, &mut result, Reduction::Sum)
            });
            let mut executable = graph?.instantiate()?;
            let refused = memory.into_inner().expect_err("the graph uses it");
            let expected =
                "RegisteredBuffer::into_inner: a graph uses the memory; drop the graph first";
            assert_eq!(refused.to_string(), expected);
            assert!(live_registrations() > 0, "the graph keeps it");
            executable.launch(stream)?;
            assert_eq!(result.to_vec()?, [2.0; 64]);
            drop(executable);
            Ok(())
        })?;
        assert_eq!(
            (
                live_registrations(),
                curium_sim_libraries::live_communicators()
            ),
            (0, 0)
        );
        Ok(())
    })?;
    Ok(())
}

#[test]
fn mismatched_windows_are_named() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    on_ranks_with(2, CommunicatorOptions::new(), |mut rank| -> TestResult {
        let memory = rank.own_memory(1024 * (rank.rank() + 1), 1.0)?;
        let refused = rank
            .communicator
            .register_window(memory)
            .expect_err("the sizes differ");
        let message = refused.to_string();
        assert!(
            message.contains("ncclCommWindowRegister(4096 elements")
                && message.contains("ncclCommWindowRegister(8192 elements"),
            "{message}"
        );
        Ok(())
    })?;
    Ok(())
}
