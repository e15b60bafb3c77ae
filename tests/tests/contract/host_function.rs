//! [`HostFunction`]: host functions in stream order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use curium_driver::{CudaVersion, Event, EventFlags, Function, HostFunctionWait};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, simulator_test};

/// The time limit of an expected event on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends a message when it is dropped.
struct Mourner(mpsc::Sender<()>);

impl Drop for Mourner {
    fn drop(&mut self) {
        self.0.send(()).expect("the test listens");
    }
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::new(13, 1)))]
fn function_runs_however_the_drivers_thread_waits(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    for wait in [HostFunctionWait::Block, HostFunctionWait::Spin] {
        let result = test.assert_calls(Function::cuLaunchHostFunc_v2, 1, || -> TestResult<_> {
            Ok(stream.launch_host_function_with(wait, move || wait)?)
        })?;
        assert_eq!(pollster::block_on(result)?, wait);
    }
    Ok(())
}

/// A choice of waiting on an older driver is an error that drops the function.
#[simulator_test(Config::new().with_driver_version(CudaVersion::new(13, 0)))]
fn unsupported_wait_mode_drops_the_function(test: &TestDriver, _: &Simulator) {
    let (sender, receiver) = mpsc::channel::<()>();
    let stream = test.stream();
    let error = stream.launch_host_function_with(HostFunctionWait::Spin, move || drop(sender));
    let error = error
        .map(drop)
        .expect_err("the driver is too old")
        .to_string();
    assert!(
        error.contains("cuLaunchHostFunc_v2 needs a driver for CUDA 13.1"),
        "{error}"
    );
    assert!(receiver.recv().is_err(), "the sender is dropped");
}

/// Host functions run in stream order and give their results.
#[driver_test]
fn host_functions_run_in_stream_order(test: &TestDriver) {
    let stream = test.stream();
    let order = Arc::new(AtomicUsize::new(0));
    let gate = Gate::on(&stream);
    let functions = [(); 3].map(|()| {
        let order = Arc::clone(&order);
        stream
            .launch_host_function(move || order.fetch_add(1, Ordering::Relaxed))
            .expect("launch failed")
    });
    assert_eq!(order.load(Ordering::Relaxed), 0, "the gate is closed");
    gate.open();
    let results = functions.map(|function| pollster::block_on(function).expect("it runs"));
    assert_eq!(results, [0, 1, 2]);
}

#[driver_test]
fn host_function_runs_though_its_future_is_dropped(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let (sender, receiver) = mpsc::channel();
    drop(stream.launch_host_function(move || sender.send(7))?);
    assert_eq!(receiver.recv_timeout(PATIENCE), Ok(7));
    stream.synchronize()?;
    Ok(())
}

#[driver_test]
fn later_work_waits_for_the_host_function(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let event = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
    let (sender, receiver) = mpsc::channel::<()>();
    let function = stream.launch_host_function(move || receiver.recv_timeout(PATIENCE))?;
    event.record(&stream)?;
    assert!(!event.is_finished()?);
    sender.send(())?;
    event.synchronize()?;
    assert_eq!(pollster::block_on(function)?, Ok(()));
    Ok(())
}

/// A panic of a host function is an error of its result and the stream continues.
#[driver_test]
fn host_function_panic_becomes_its_result(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let function = stream.launch_host_function(|| panic!("on purpose: {}", 42))?;
    let error = pollster::block_on(function).expect_err("the function panics");
    assert_eq!(error.to_string(), "callback: panicked (on purpose: 42)");
    assert!(!error.is_sticky());
    let next = stream.launch_host_function(|| 1)?;
    assert_eq!(pollster::block_on(next)?, 1);
    Ok(())
}

#[driver_test]
fn driver_calls_within_a_host_function_fail(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let device = test.device();
    // The device owns no object of the driver, so dropping it makes no call.
    let function =
        stream.launch_host_function(move || device.total_memory().map_err(|error| error.code()));
    let result = pollster::block_on(function?)?;
    assert_eq!(result, Err(Some(CUresult::CUDA_ERROR_NOT_PERMITTED)));
    Ok(())
}

/// A host function of a failed context is dropped and its result is the error.
#[simulator_test]
fn failed_context_drops_host_functions(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let (sender, receiver) = mpsc::channel();
    let mourner = Mourner(sender);
    let function = stream.launch_host_function(move || drop(mourner))?;
    simulator.inject(
        Fault::on(Function::cuEventQuery)
            .always()
            .returns(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
    );
    receiver.recv_timeout(PATIENCE)?;
    let error = pollster::block_on(function).expect_err("the function never runs");
    assert!(error.is_sticky(), "{error}");
    simulator.clear_faults();
    // A late callback has no effect.
    gate.open();
    stream.synchronize()?;
    Ok(())
}

#[simulator_test]
fn host_function_that_cannot_be_launched_is_dropped(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let stream = test.stream();
    let calls = [
        Function::cuStreamIsCapturing,
        Function::cuEventCreate,
        Function::cuEventRecord,
        Function::cuLaunchHostFunc,
    ];
    for function in calls {
        let (sender, receiver) = mpsc::channel();
        let mourner = Mourner(sender);
        simulator.inject(
            Fault::on(function)
                .call(1)
                .returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        );
        let error = stream
            .launch_host_function(move || drop(mourner))
            .expect_err("a call fails");
        assert_eq!(error.function(), Some(function));
        receiver.recv_timeout(PATIENCE)?;
        simulator.clear_faults();
    }
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::HostFunctionWait;

    use crate::operations::{Operation, Operations, made};

    const SOLITARY: &[Operation] = &[
        ("Stream::launch_host_function", |fixture| {
            made(pollster::block_on(
                fixture.stream.launch_host_function(|| 3)?,
            )?)
        }),
        ("Stream::launch_host_function_with", |fixture| {
            let done = fixture
                .stream
                .launch_host_function_with(HostFunctionWait::Block, || 3)?;
            made(pollster::block_on(done)?)
        }),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
