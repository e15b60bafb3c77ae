//! Waits for points of a stream: how they are detected, cancelled, limited and combined.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::AsRawStream as _;
use curium_driver::{
    Completion, Error, ErrorClass, Event, EventFlags, Function, Graph, Result, Stream,
};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, resume_panic, simulator_test};
#[cfg(not(miri))]
use curium_tests::{in_fork, in_new_process, on_driver};
use futures_lite::future;

/// The time limit of an expected event on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// A time limit that passes.
const SHORT: Duration = Duration::from_millis(5);

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Awaits a point that is reached at once, so that the stream has a history of short waits.
fn learn_short_wait(stream: &Stream) -> TestResult {
    let gate = Gate::on(stream);
    let future = stream.completion();
    gate.open();
    stream.synchronize()?;
    pollster::block_on(future)?;
    Ok(())
}

/// A stream whose waits are short enqueues a write and no host function.
#[simulator_test]
fn short_waits_request_no_callback(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    // The first waits may be long on a busy machine.
    for _ in 0..20 {
        learn_short_wait(&stream)?;
    }
    let gate = Gate::on(&stream);
    let writes = simulator.calls(Function::cuStreamWriteValue64_v2);
    let callbacks = simulator.calls(Function::cuLaunchHostFunc);
    let future = stream.completion();
    assert_eq!(
        simulator.calls(Function::cuStreamWriteValue64_v2) - writes,
        1
    );
    assert_eq!(simulator.calls(Function::cuLaunchHostFunc) - callbacks, 0);
    gate.open();
    pollster::block_on(future)?;
    Ok(())
}

/// Where the device cannot write values in stream order, a host function wakes the task.
#[simulator_test]
fn unsupported_writes_fall_back(test: &TestDriver, simulator: &Simulator) -> TestResult {
    for function in [
        Function::cuMemHostRegister_v2,
        Function::cuStreamWriteValue64_v2,
    ] {
        let stream = test.stream();
        simulator.inject(
            Fault::on(function)
                .always()
                .returns(CUresult::CUDA_ERROR_NOT_SUPPORTED),
        );
        let gate = Gate::on(&stream);
        let callbacks = simulator.calls(Function::cuLaunchHostFunc);
        let future = stream.completion();
        assert_eq!(simulator.calls(Function::cuLaunchHostFunc) - callbacks, 1);
        gate.open();
        pollster::block_on(future)?;
        simulator.clear_faults();
    }
    Ok(())
}

/// Futures of one stream are resolved in order, and each is woken.
#[driver_test]
fn many_futures_of_one_stream_resolve(test: &TestDriver) -> TestResult {
    const COUNT: usize = if cfg!(miri) { 20 } else { 10_000 };
    let stream = test.stream();
    let gate = Gate::on(&stream);
    // A driver blocks the thread that enqueues more than about a thousand operations behind a gate.
    let opener = thread::spawn(move || {
        thread::sleep(SHORT);
        gate.open();
    });
    let futures: Vec<Completion> = (0..COUNT).map(|_| stream.completion()).collect();
    let resolved = AtomicUsize::new(0);
    let executor = async_executor::LocalExecutor::new();
    let tasks: Vec<_> = futures
        .into_iter()
        .map(|future| {
            executor.spawn(async {
                future.await?;
                resolved.fetch_add(1, Ordering::Relaxed);
                Ok::<(), Error>(())
            })
        })
        .collect();
    future::block_on(executor.run(async {
        for task in tasks {
            task.await?;
        }
        Ok::<(), Error>(())
    }))?;
    assert_eq!(resolved.load(Ordering::Relaxed), COUNT);
    resume_panic(opener.join());
    Ok(())
}

/// More streams than a page has words, most of which end while their future waits.
#[driver_test]
fn streams_reuse_words_after_their_end(test: &TestDriver) -> TestResult {
    const COUNT: usize = if cfg!(miri) { 20 } else { 1_500 };
    let context = test.context();
    let mut futures = Vec::new();
    for round in 0..COUNT {
        let stream = context.stream()?;
        let gate = Gate::on(&stream);
        let mut future = stream.completion();
        drop(stream);
        assert!(poll_once(&mut future).is_pending());
        drop(gate);
        if round % 3 == 0 {
            futures.push(future);
        }
    }
    pollster::block_on(Completion::join(futures))?;
    Ok(())
}

#[driver_test]
fn future_outlives_its_stream_and_context(test: &TestDriver) -> TestResult {
    let stream = test.context().stream()?;
    let gate = Gate::on(&stream);
    let mut future = stream.completion();
    assert!(poll_once(&mut future).is_pending());
    drop(stream);
    gate.open();
    pollster::block_on(future)?;
    Ok(())
}

#[driver_test]
fn timeout_names_the_point_and_can_continue(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let begin = Instant::now();
    let mut waiting = stream.completion().timeout(SHORT);
    let error = pollster::block_on(&mut waiting).expect_err("the gate is closed");
    assert!(begin.elapsed() >= SHORT);
    let text = error.to_string();
    assert!(
        text.starts_with("Stream::completion: not complete after 5ms (point ")
            && text.contains("the work continues"),
        "{text}"
    );
    assert_eq!(error.class(), ErrorClass::Resource);
    let Error::Timeout(error) = error else {
        return Err("another error".into());
    };
    assert_eq!(error.limit, SHORT);
    let mut future = waiting.into_inner();
    assert!(poll_once(&mut future).is_pending());
    gate.open();
    pollster::block_on(future)?;
    Ok(())
}

#[driver_test]
fn timeout_that_does_not_pass_returns_the_result(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let future = stream.completion().timeout(PATIENCE);
    let endless = stream.completion().timeout(Duration::MAX);
    let function = stream.launch_host_function(|| 7)?.timeout(PATIENCE);
    gate.open();
    pollster::block_on(future)?;
    pollster::block_on(endless)?;
    assert_eq!(pollster::block_on(function)?, 7);
    Ok(())
}

#[driver_test]
fn timeout_of_an_event_names_the_event(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let event = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
    let gate = Gate::on(&stream);
    event.record(&stream)?;
    let waiting = event.completion().timeout(SHORT);
    let error = pollster::block_on(waiting).expect_err("the gate is closed");
    let text = error.to_string();
    assert!(
        text.starts_with("Event::completion: not complete after 5ms (Event("),
        "{text}"
    );
    gate.open();
    stream.synchronize()?;
    Ok(())
}

#[driver_test]
fn timeout_of_a_join_names_the_missing_points(test: &TestDriver) -> TestResult {
    // Host functions of different streams may run one after another: the first gate is open when
    // the others close.
    let first = test.stream();
    let reached = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
    let gate = Gate::on(&first);
    reached.record(&first)?;
    let mut points = vec![reached.completion(), first.completion()];
    gate.open();
    first.synchronize()?;

    let streams: Vec<Stream> = (0..10).map(|_| test.stream()).collect();
    let gates: Vec<Gate> = streams.iter().map(Gate::on).collect();
    let missing = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
    missing.record(&streams[0])?;
    points.insert(0, missing.completion());
    points.extend(streams.iter().map(Stream::completion));
    let mut waiting = Completion::join(points).timeout(SHORT);
    let error = pollster::block_on(&mut waiting).expect_err("ten gates are closed");
    let text = error.to_string();
    assert!(
        text.starts_with("Completion::join: not complete after 5ms (Event("),
        "{text}"
    );
    let Error::Timeout(error) = error else {
        return Err("another error".into());
    };
    let names: Vec<&str> = error.subject.split(", ").collect();
    let end_of_reached = format!(" of stream {:?}", first.as_raw());
    assert_eq!(names[0], format!("{missing:?}"));
    assert!(!names.contains(&format!("{reached:?}").as_str()), "{text}");
    assert!(
        !names.iter().any(|name| name.ends_with(&end_of_reached)),
        "{text}"
    );
    assert_eq!((names.len(), names.last()), (9, Some(&"3 more")), "{text}");

    let mut joined = waiting.into_inner();
    assert!(poll_once(&mut joined).is_pending());
    drop(gates);
    pollster::block_on(joined)?;
    Ok(())
}

#[driver_test]
fn timeout_of_a_join_returns_the_result(test: &TestDriver) -> TestResult {
    let streams = [test.stream(), test.stream()];
    let gates = streams.each_ref().map(Gate::on);
    let joined = Completion::join(streams.iter().map(Stream::completion)).timeout(PATIENCE);
    drop(gates);
    pollster::block_on(joined)?;
    pollster::block_on(Completion::join([]).timeout(Duration::ZERO))?;
    Ok(())
}

/// The loser of a race is dropped, and the winner's task continues.
#[driver_test]
fn select_cancels_a_wait(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    for _ in 0..10 {
        let waiting = async { stream.completion().await.map(|()| 1) };
        let value = pollster::block_on(future::or(waiting, ready(Ok(2))))?;
        assert_eq!(value, 2);
    }
    let limited = stream.completion().timeout(SHORT);
    let endless = stream.completion();
    pollster::block_on(future::or(limited, endless)).expect_err("the gate is closed");
    gate.open();
    pollster::block_on(stream.completion())?;
    Ok(())
}

#[driver_test]
fn join_waits_for_every_stream(test: &TestDriver) -> TestResult {
    let streams = [test.stream(), test.stream(), test.stream()];
    let gates = streams.each_ref().map(Gate::on);
    let mut joined = Completion::join(streams.iter().map(Stream::completion));
    for gate in gates.into_iter().rev() {
        assert!(poll_once(&mut joined).is_pending());
        gate.open();
    }
    pollster::block_on(joined)?;
    for stream in &streams {
        stream.synchronize()?;
    }
    pollster::block_on(Completion::join([]))?;
    Ok(())
}

/// An error does not end the wait for the other streams, and is returned.
#[simulator_test]
fn join_returns_the_first_error(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    simulator.inject(Fault::on(Function::cuStreamQuery).returns(code));
    let refused = stream.completion();
    let mut joined = Completion::join([refused, stream.completion()]);
    assert!(poll_once(&mut joined).is_pending());
    gate.open();
    let error = pollster::block_on(joined).expect_err("a query failed");
    assert_eq!(error.code(), Some(code), "{error}");
    Ok(())
}

/// Counts its wake-ups.
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task is woken rarely before its point, and then once; never after its future was dropped.
#[driver_test]
fn wakes_are_few_with_a_history(test: &TestDriver) -> TestResult {
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 50 };
    let stream = test.stream();
    for round in 0..ROUNDS {
        let counter = Arc::new(Counter(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&counter));
        let gate = Gate::on(&stream);
        let mut future = stream.completion();
        let mut dropped = stream.completion();
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut future).poll(&mut context).is_pending());
        let unused = Arc::new(Counter(AtomicUsize::new(0)));
        let other = Waker::from(Arc::clone(&unused));
        assert!(
            Pin::new(&mut dropped)
                .poll(&mut Context::from_waker(&other))
                .is_pending()
        );
        drop(dropped);
        thread::sleep(Duration::from_micros(200 * (round as u64 % 5)));
        gate.open();
        let begin = Instant::now();
        while Pin::new(&mut future).poll(&mut context).is_pending() {
            assert!(begin.elapsed() < PATIENCE, "the point is never seen");
            thread::yield_now();
        }
        let wakes = counter.0.load(Ordering::Relaxed);
        // A poll that coincides with the early wake-up registers the task as if it had not been
        // woken.
        assert!(wakes <= 10, "{wakes} wake-ups");
        let wakes = unused.0.load(Ordering::Relaxed);
        assert!(wakes <= 1, "{wakes} wake-ups of a dropped future");
    }
    Ok(())
}

/// Every combination of the history and the spin limit resolves.
#[driver_test]
fn spin_limits_do_not_change_the_result(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for limit in [Duration::ZERO, Duration::from_micros(1), SHORT] {
        for delay in [Duration::ZERO, Duration::from_millis(1)] {
            let gate = Gate::on(&stream);
            let future = stream.completion().with_spin_limit(limit);
            let opener = thread::spawn(move || {
                thread::sleep(delay);
                gate.open();
            });
            pollster::block_on(future)?;
            resume_panic(opener.join());
        }
    }
    Ok(())
}

/// Returns an event that is recorded on `stream` after a closed gate.
fn gated_event(stream: &Stream) -> TestResult<(Event, Gate)> {
    let event = Event::new(stream.context(), EventFlags::DISABLE_TIMING)?;
    let gate = Gate::on(stream);
    event.record(stream)?;
    Ok((event, gate))
}

/// A future of an event enqueues nothing, and waits for no work after the event.
#[simulator_test]
fn event_future_ignores_later_work(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let (event, gate) = gated_event(&stream)?;
    let later = Gate::on(&stream);
    let enqueuing = [
        Function::cuStreamWriteValue64_v2,
        Function::cuStreamWaitEvent,
        Function::cuEventRecord,
        Function::cuLaunchHostFunc,
    ];
    let before = enqueuing.map(|function| simulator.calls(function));
    let mut future = event.completion();
    assert!(poll_once(&mut future).is_pending());
    gate.open();
    pollster::block_on(future)?;
    assert_eq!(enqueuing.map(|function| simulator.calls(function)), before);
    assert!(!stream.is_finished()?, "the second gate is closed");
    later.open();
    stream.synchronize()?;
    Ok(())
}

/// Every combination of an event's history and the spin limit resolves.
#[driver_test]
fn spin_limits_of_events_do_not_change_the_result(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let event = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
    for limit in [Duration::ZERO, Duration::from_micros(1), SHORT] {
        for delay in [0, 0, 300, 1_000, 4_000, 4_000, 0] {
            let gate = Gate::on(&stream);
            event.record(&stream)?;
            let future = event.completion().with_spin_limit(limit);
            let opener = thread::spawn(move || {
                thread::sleep(Duration::from_micros(delay));
                gate.open();
            });
            pollster::block_on(future)?;
            assert!(event.is_finished()?);
            resume_panic(opener.join());
        }
    }
    Ok(())
}

/// A poll may spin until an event completes; then no other thread is involved, and the task is not
/// woken.
#[driver_test]
fn poll_of_an_event_spins_up_to_its_limit(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let (event, gate) = gated_event(&stream)?;
    let mut future = event.completion().with_spin_limit(PATIENCE);
    let opener = thread::spawn(move || {
        thread::sleep(SHORT);
        gate.open();
    });
    let Poll::Ready(result) = poll_once(&mut future) else {
        return Err("the poll has returned before its limit".into());
    };
    result?;
    resume_panic(opener.join());
    Ok(())
}

/// The task of an event is woken at its end, and at most once before it.
#[driver_test]
fn event_wakes_are_few_with_a_history(test: &TestDriver) -> TestResult {
    const ROUNDS: usize = if cfg!(miri) { 3 } else { 50 };
    let stream = test.stream();
    let event = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
    for round in 0..ROUNDS {
        let counter = Arc::new(Counter(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&counter));
        let mut context = Context::from_waker(&waker);
        let gate = Gate::on(&stream);
        event.record(&stream)?;
        let mut future = event.completion();
        assert!(Pin::new(&mut future).poll(&mut context).is_pending());
        thread::sleep(Duration::from_micros(200 * (round as u64 % 5)));
        gate.open();
        let begin = Instant::now();
        while Pin::new(&mut future).poll(&mut context).is_pending() {
            assert!(begin.elapsed() < PATIENCE, "the end is never seen");
            thread::yield_now();
        }
        let wakes = counter.0.load(Ordering::Relaxed);
        assert!(wakes <= 2, "{wakes} wake-ups");
    }
    Ok(())
}

/// Futures of many events, some dropped at each stage, resolve in the order in which their streams
/// reach them.
#[driver_test]
fn many_events_resolve_and_cancel(test: &TestDriver) -> TestResult {
    const COUNT: usize = if cfg!(miri) { 8 } else { 200 };
    let streams = [test.stream(), test.stream()];
    let gates = streams.each_ref().map(Gate::on);
    let mut futures = Vec::new();
    for round in 0..COUNT {
        let event = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
        event.record(&streams[round % 2])?;
        let mut future = event.completion();
        let mut dropped = event.completion();
        drop(event.completion());
        assert!(poll_once(&mut dropped).is_pending());
        if round % 3 == 0 {
            assert!(poll_once(&mut future).is_pending());
        }
        futures.push(future);
    }
    for gate in gates.into_iter().rev() {
        gate.open();
    }
    pollster::block_on(Completion::join(futures))?;
    Ok(())
}

/// The background thread queries an event rarely during a long wait, and more rarely if the
/// previous wait took as long.
#[cfg(not(miri))]
#[simulator_test]
fn idle_event_wait_makes_few_queries(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let event = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
    for most in [130, 45] {
        let gate = Gate::on(&stream);
        event.record(&stream)?;
        let future = event.completion().with_spin_limit(Duration::ZERO);
        let opener = thread::spawn(move || {
            thread::sleep(Duration::from_secs(1));
            gate.open();
        });
        let before = simulator.calls(Function::cuEventQuery);
        pollster::block_on(future)?;
        let queries = simulator.calls(Function::cuEventQuery) - before;
        resume_panic(opener.join());
        assert!(queries <= most, "{queries} queries");
    }
    Ok(())
}

/// An event that was recorded in a capture has no time, so its future is an error.
#[driver_test]
fn future_of_a_captured_event_is_an_error(test: &TestDriver) -> TestResult {
    let context = test.context();
    let event = Event::new(&context, EventFlags::DISABLE_TIMING)?;
    let graph = Graph::capture(&context, |scope| event.record(scope))?;
    let result = pollster::block_on(event.completion());
    let error = result.err().ok_or("a point of a graph was accepted")?;
    assert!(error.to_string().contains("was recorded in a capture"));
    drop(graph);
    Ok(())
}

/// A device that is lost during a wait for an event resolves the future to its error.
#[simulator_test(Config::new())]
fn lost_device_resolves_futures_of_events(test: &TestDriver, simulator: &Simulator) -> TestResult {
    test.may_leak();
    let stream = test.stream();
    let (event, gate) = gated_event(&stream)?;
    let future = event.completion();
    let waiting = thread::spawn(move || pollster::block_on(future));
    thread::sleep(SHORT);
    simulator.inject(
        Fault::on(Function::cuEventQuery)
            .always()
            .returns(CUresult::CUDA_ERROR_LAUNCH_FAILED),
    );
    let result = resume_panic(waiting.join());
    let error = result.err().ok_or("no error from a lost device")?;
    assert!(error.is_sticky(), "{error}");
    simulator.clear_faults();
    drop(gate);
    Ok(())
}

/// The first wait in a context registers memory, which other code's capture on another thread would
/// forbid.
#[driver_test]
fn first_wait_spares_captures_of_other_threads(test: &TestDriver) -> TestResult {
    let context = test.context();
    let graph = Graph::capture(&context, |_| -> Result<()> {
        let stream = context.stream()?;
        let waited = thread::scope(|threads| {
            threads
                .spawn(|| {
                    let gate = Gate::on(&stream);
                    let future = stream.completion();
                    gate.open();
                    pollster::block_on(future)
                })
                .join()
        });
        resume_panic(waited)
    })?;
    assert!(graph.nodes()?.is_empty());
    Ok(())
}

/// A context whose device is lost resolves every future to its error, however long the waits of its
/// streams are.
#[simulator_test(Config::new())]
fn lost_device_resolves_every_future(test: &TestDriver, simulator: &Simulator) -> TestResult {
    test.may_leak();
    let streams = [test.stream(), test.stream()];
    learn_short_wait(&streams[0])?;
    let gates = streams.each_ref().map(Gate::on);
    let futures: Vec<Completion> = streams
        .iter()
        .chain(&streams)
        .map(Stream::completion)
        .collect();
    let waiting: Vec<_> = futures
        .into_iter()
        .map(|future| thread::spawn(move || pollster::block_on(future)))
        .collect();
    thread::sleep(SHORT);
    simulator.inject(
        Fault::on(Function::cuEventQuery)
            .always()
            .returns(CUresult::CUDA_ERROR_LAUNCH_FAILED),
    );
    for thread in waiting {
        let error = resume_panic(thread.join()).expect_err("the device is lost");
        assert!(error.is_sticky(), "{error}");
    }
    simulator.clear_faults();
    drop(gates);
    Ok(())
}

/// A query that fails once does not resolve a future whose point is reached later.
#[simulator_test]
fn query_that_fails_once_is_repeated(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    let mut future = stream.completion();
    assert!(poll_once(&mut future).is_pending());
    simulator.inject(Fault::on(Function::cuEventQuery).returns(CUresult::CUDA_ERROR_UNKNOWN));
    thread::sleep(Duration::from_millis(20));
    let opener = thread::spawn(move || gate.open());
    pollster::block_on(future)?;
    resume_panic(opener.join());
    Ok(())
}

/// A child neither reads nor waits for the points of its parent, which continues.
#[cfg(not(miri))]
#[test]
fn forked_child_does_not_wait() -> TestResult {
    in_new_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let event = Event::new(&test.context(), EventFlags::DISABLE_TIMING)?;
            let gate = Gate::on(&stream);
            event.record(&stream)?;
            let mut futures = [stream.completion(), stream.completion(), event.completion()];
            assert!(poll_once(&mut futures[0]).is_pending());
            let mut function = stream.launch_host_function(|| ())?;
            let mut limited = stream.completion().timeout(PATIENCE);
            assert!(poll_once(&mut limited).is_pending());
            in_fork(|| {
                for future in &mut futures {
                    assert!(matches!(
                        poll_once(future),
                        Poll::Ready(Err(Error::Fork(_)))
                    ));
                }
                assert!(matches!(
                    poll_once(&mut function),
                    Poll::Ready(Err(Error::Fork(_)))
                ));
                assert!(matches!(
                    poll_once(&mut limited),
                    Poll::Ready(Err(Error::Fork(_)))
                ));
                drop(futures);
                drop(function);
                drop(limited);
            });
            gate.open();
            Ok(())
        })
    })
}

/// The background thread sleeps during a long wait.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn long_wait_takes_little_time_of_the_cpu() -> TestResult {
    in_new_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            for history in 0..2 {
                let gate = Gate::on(&stream);
                let future = stream.completion();
                let opener = thread::spawn(move || {
                    thread::sleep(Duration::from_secs(1));
                    let consumed = watcher_time();
                    gate.open();
                    consumed
                });
                let before = watcher_time()?;
                pollster::block_on(future)?;
                let consumed = resume_panic(opener.join())?.saturating_sub(before);
                // A thread that spins would consume the whole second.
                assert!(
                    consumed < Duration::from_millis(50),
                    "{consumed:?} in round {history}"
                );
                learn_short_wait(&stream)?;
            }
            Ok(())
        })
    })
}

/// Returns the CPU time of the background thread.
#[cfg(all(target_os = "linux", not(miri)))]
fn watcher_time() -> TestResult<Duration> {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let folder = task?.path();
        if std::fs::read_to_string(folder.join("comm"))?.trim() != "curium-watch" {
            continue;
        }
        let statistics = std::fs::read_to_string(folder.join("schedstat"))?;
        let on_cpu = statistics
            .split_whitespace()
            .next()
            .ok_or("no number in `schedstat`")?;
        nanoseconds += on_cpu.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}
