//! [`Completion`]: futures that resolve when a stream has completed its work, on any executor.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use curium_driver::{Completion, Event, EventFlags, Function, Returned, Stream};
#[cfg(not(miri))]
use curium_driver::{LaunchConfig, Library};
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, on_driver, resume_panic, simulator_test,
};
#[cfg(not(miri))]
use curium_tests::{in_own_process, kernels};

/// The time limit of an expected event on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A minimal executor that parks the thread and counts its wake-ups.
struct Parker {
    thread: Thread,
    woken: AtomicBool,
    wakes: AtomicUsize,
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Runs `future` with the minimal executor, and returns its output and the number of wake-ups.
fn block_on<F: Future>(future: F) -> (F::Output, usize) {
    let parker = Arc::new(Parker {
        thread: thread::current(),
        woken: AtomicBool::new(false),
        wakes: AtomicUsize::new(0),
    });
    let waker = Waker::from(Arc::clone(&parker));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (output, parker.wakes.load(Ordering::Relaxed));
        }
        let begin = Instant::now();
        while !parker.woken.swap(false, Ordering::Acquire) {
            assert!(begin.elapsed() < PATIENCE, "no wake-up is lost");
            thread::park_timeout(PATIENCE);
        }
    }
}

/// Opens `gate` on another thread after a short delay.
fn open_later(gate: Gate) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(5));
        gate.open();
    })
}

fn event(test: &TestDriver) -> TestResult<Event> {
    Ok(Event::new(&test.context(), EventFlags::DISABLE_TIMING)?)
}

fn poll_once(future: &mut Completion) -> Poll<curium_driver::Result<()>> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[driver_test]
fn idle_stream_future_is_ready(test: &TestDriver) {
    let stream = test.stream();
    test.assert_calls(Function::cuLaunchHostFunc, 0, || {
        assert!(matches!(
            poll_once(&mut stream.completion()),
            Poll::Ready(Ok(()))
        ));
    });
}

#[driver_test]
fn unrecorded_event_future_is_ready(test: &TestDriver) -> TestResult {
    assert!(matches!(
        poll_once(&mut event(test)?.completion()),
        Poll::Ready(Ok(()))
    ));
    Ok(())
}

/// A future of a stream is ready when its work is done and is woken once.
#[driver_test]
fn stream_future_is_woken_once_at_completion(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let mut future = stream.completion();
    assert!(poll_once(&mut future).is_pending());
    let opener = open_later(gate);
    let (result, wakes) = block_on(future);
    result?;
    assert!(wakes <= 1, "{wakes} wake-ups");
    resume_panic(opener.join());
    Ok(())
}

/// A future of an event is ready when the point is reached and is woken once.
#[driver_test]
fn event_future_is_woken_once_when_reached(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let event = event(test)?;
    let gate = Gate::on(&stream);
    event.record(&stream)?;
    let mut future = event.completion();
    assert!(poll_once(&mut future).is_pending());
    let opener = open_later(gate);
    let (result, wakes) = block_on(future);
    result?;
    assert!(wakes <= 1, "{wakes} wake-ups");
    resume_panic(opener.join());
    Ok(())
}

#[driver_test]
fn future_covers_earlier_work_and_not_later_work(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let first = Gate::on(&stream);
    let future = stream.completion();
    let second = Gate::on(&stream);
    first.open();
    block_on(future).0?;
    assert!(!stream.is_finished()?, "the second gate is closed");
    second.open();
    stream.synchronize()?;
    Ok(())
}

#[driver_test]
fn futures_run_on_every_executor(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let work = |stream: Stream| async move {
        let gate = Gate::on(&stream);
        let future = stream.completion();
        let opener = open_later(gate);
        let result = future.await;
        resume_panic(opener.join());
        result
    };
    pollster::block_on(work(stream.clone()))?;
    let smol = async_executor::Executor::new();
    let task = smol.spawn(work(stream.clone()));
    futures_lite::future::block_on(smol.run(task))?;
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()?;
    tokio.block_on(async { tokio::spawn(work(stream.clone())).await })??;
    block_on(work(stream)).0?;
    Ok(())
}

#[test]
fn futures_share_one_thread() -> TestResult {
    const STREAMS: usize = 8;
    const ROUNDS: usize = if cfg!(miri) { 2 } else { 25 };
    on_driver(|test| -> TestResult {
        let context = test.context();
        let streams: Vec<Stream> = (0..STREAMS)
            .map(|_| context.stream())
            .collect::<Result<_, _>>()?;
        let work = |stream: Stream| async move {
            for _ in 0..ROUNDS {
                let event = Event::new(stream.context(), EventFlags::DISABLE_TIMING)?;
                drop(stream.launch_host_function(thread::yield_now)?);
                event.record(&stream)?;
                let whole = stream.completion();
                let point = event.completion();
                point.await?;
                whole.await?;
            }
            Ok::<(), curium_driver::Error>(())
        };
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()?;
        tokio.block_on(async {
            let tasks: Vec<_> = streams
                .iter()
                .map(|stream| tokio::spawn(work(stream.clone())))
                .collect();
            for task in tasks {
                let result = tokio::time::timeout(PATIENCE, task).await;
                result
                    .expect("no wake-up is lost")
                    .expect("the task runs")
                    .expect("the work succeeds");
            }
        });
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn executor_thread_is_free_while_a_future_waits(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build();
    tokio?.block_on(async {
        let gate = Gate::on(&stream);
        let waiting = tokio::spawn(stream.completion());
        // Runs on the only worker, concurrently with the waiting task.
        let other = tokio::spawn(async move { gate.open() });
        other.await.expect("the other task runs");
        waiting
            .await
            .expect("the task runs")
            .expect("the work succeeds");
    });
    Ok(())
}

#[driver_test]
fn dropped_future_does_not_change_the_stream(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let mut polled = stream.completion();
    assert!(poll_once(&mut polled).is_pending());
    drop(polled);
    drop(stream.completion());
    let point = stream.completion();
    let event = event(test)?;
    event.record(&stream)?;
    drop(event.completion());
    gate.open();
    block_on(point).0?;
    stream.close()?;
    Ok(())
}

/// A dropped future releases its event while the work is pending.
#[driver_test]
fn dropped_future_releases_its_pending_event(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut event = event(test)?;
    let gate = Gate::on(&stream);
    event.record(&stream)?;
    drop(event.completion());
    let begin = Instant::now();
    // The thread that polls futures may be polling this one.
    while let Err(Returned { value: back, error }) = event.close() {
        assert!(begin.elapsed() < PATIENCE, "{error}");
        event = back;
    }
    gate.open();
    stream.synchronize()?;
    Ok(())
}

#[driver_test]
fn leaked_future_is_sound(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let event = event(test)?;
    let gate = Gate::on(&stream);
    event.record(&stream)?;
    let mut future = Box::new(event.completion());
    assert!(poll_once(&mut future).is_pending());
    let future: &'static mut Completion = Box::leak(future);
    drop(event);
    gate.open();
    stream.synchronize()?;
    // Frees the value that the future held, so that the test itself leaks nothing.
    let begin = Instant::now();
    while poll_once(future).is_pending() {
        assert!(begin.elapsed() < PATIENCE, "the point is never seen");
        thread::yield_now();
    }
    // SAFETY: the reference came from `Box::leak`, and no other reference exists.
    drop(unsafe { Box::from_raw(future) });
    Ok(())
}

#[driver_test]
fn event_with_a_live_future_is_not_closed(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let event = event(test)?;
    let gate = Gate::on(&stream);
    event.record(&stream)?;
    let future = event.completion();
    let (event, error) = event
        .close()
        .expect_err("the future still needs the event")
        .into_parts();
    assert!(
        error.to_string().contains("a future of the event"),
        "{error}"
    );
    gate.open();
    block_on(future).0?;
    let begin = Instant::now();
    let mut event = event;
    while let Err(Returned { value: back, error }) = event.close() {
        assert!(begin.elapsed() < PATIENCE, "{error}");
        event = back;
    }
    Ok(())
}

#[driver_test]
fn latest_waker_is_woken(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let mut future = stream.completion();
    assert!(poll_once(&mut future).is_pending());
    let opener = open_later(gate);
    block_on(future).0?;
    resume_panic(opener.join());
    Ok(())
}

/// A future of a failed context resolves to its error without a callback.
#[simulator_test]
fn failed_context_resolves_futures_to_its_error(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let event = event(test)?;
    event.record(&stream)?;
    let whole = stream.completion();
    let point = event.completion();
    simulator.inject(
        Fault::on(Function::cuEventQuery)
            .always()
            .returns(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS),
    );
    for future in [whole, point] {
        let error = block_on(future).0.expect_err("the context has failed");
        assert!(error.is_sticky(), "{error}");
        assert_eq!(error.function(), Some(Function::cuEventQuery));
    }
    simulator.clear_faults();
    gate.open();
    stream.synchronize()?;
    Ok(())
}

/// Futures and host functions of a kernel that traps end with its error.
#[cfg(not(miri))]
#[test]
fn trap_ends_futures() -> TestResult {
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let event = event(test)?;
            let library = Library::from_ptx(test.driver(), kernels::FAULTS)?;
            let trap = library.kernel::<(u32,)>("trap")?;
            let gate = Gate::on(&stream);
            // SAFETY: the kernel accesses no memory.
            unsafe { trap.launch(&stream, LaunchConfig::new(1, 32), (1,)) }?;
            event.record(&stream)?;
            let whole = stream.completion();
            let point = event.completion();
            let function = stream.launch_host_function(|| panic!("the function never runs"))?;
            gate.open();
            for result in [block_on(whole).0, block_on(point).0, block_on(function).0] {
                let error = result.expect_err("the context has failed");
                assert_eq!(
                    error.code(),
                    Some(CUresult::CUDA_ERROR_LAUNCH_FAILED),
                    "{error}"
                );
            }
            if let Some(simulator) = test.simulator() {
                simulator.reset_errors();
            }
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

#[simulator_test]
fn future_that_cannot_be_set_up_ends_with_the_error(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let calls = [
        Function::cuStreamIsCapturing,
        Function::cuThreadExchangeStreamCaptureMode,
        Function::cuStreamQuery,
        Function::cuDeviceGetAttribute,
        Function::cuMemHostRegister_v2,
        Function::cuMemHostGetDevicePointer_v2,
        Function::cuEventCreate,
        Function::cuEventRecord,
        Function::cuStreamWriteValue64_v2,
        Function::cuLaunchHostFunc,
    ];
    for function in calls {
        let fault = Fault::on(function).returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        simulator.inject(fault.call(1));
        let error = block_on(stream.completion()).0.expect_err("a call fails");
        assert_eq!(
            (error.function(), error.is_out_of_memory()),
            (Some(function), true),
            "{error}"
        );
        simulator.clear_faults();
    }
    gate.open();
    stream.synchronize()?;
    Ok(())
}

/// A future queries in the relaxed mode and restores the mode.
#[simulator_test]
fn future_restores_the_capture_mode(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let calls = || simulator.calls(Function::cuThreadExchangeStreamCaptureMode);
    let before = calls();
    block_on(stream.completion()).0?;
    assert_eq!(calls() - before, 2);
    Ok(())
}

pub(crate) mod operations {
    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Stream::completion", |fixture| {
            made(pollster::block_on(fixture.stream.completion())?)
        }),
        ("Event::completion", |fixture| {
            made(pollster::block_on(fixture.event.completion())?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
