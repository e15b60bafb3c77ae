//! Graph launches and owner accesses on several threads, with call observers that run code in the
//! middle.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{
    Error, Function, Graph, GraphExec, LaunchConfig, Library, Stream, observe_calls,
};
use curium_memory::{Array, ArrayFlags, ArrayShape, DeviceBuffer, Staging, StagingOptions};
use curium_sim::{Config, Fault, FaultPlan};
use curium_tests::{
    During, Gate, TestDriver, TestResult, assert_reentrant, driver_test, on_driver, on_simulator,
    resume_panic,
};
use parking_lot::Mutex;

use super::{LEN, buffer, captured, values};

const NOTHING: &str =
    ".version 7.8 .target sm_75 .address_size 64 .visible .entry nothing() { ret; }";

/// An operation of an observer does not end the access around it.
#[driver_test]
fn observer_operation_keeps_the_outer_access(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let other = test.stream();
    let mut x = buffer(&origin, 1);
    let mut nested = buffer(&other, 2);
    let mut graph = captured(test, |scope| x.on_mut(scope).fill(7))?;
    let _also_leased = captured(test, |scope| nested.on_mut(scope).fill(7))?;
    let (go, may_go) = mpsc::channel();
    let is_enqueued = Arc::new(AtomicBool::new(false));
    let was_enqueued = Arc::new(AtomicBool::new(false));
    let observer = {
        let nested = Mutex::new(nested);
        let go = Mutex::new(go);
        let is_enqueued = Arc::clone(&is_enqueued);
        let was_enqueued = Arc::clone(&was_enqueued);
        let other = other.clone();
        During::call_of(Function::cuMemsetD32Async, move || {
            nested
                .lock()
                .on_mut(&other)
                .fill(3)
                .expect("the memory belongs to another context");
            go.lock().send(()).expect("the other thread listens");
            thread::sleep(Duration::from_millis(50));
            was_enqueued.store(is_enqueued.load(Ordering::SeqCst), Ordering::SeqCst);
        })
    };
    thread::scope(|scope| -> TestResult<_> {
        let launching = test.stream();
        let is_enqueued = Arc::clone(&is_enqueued);
        let launch = scope.spawn(move || -> TestResult {
            may_go.recv()?;
            graph.launch(&launching)?;
            is_enqueued.store(true, Ordering::SeqCst);
            Ok(())
        });
        let guard = observe_calls(observer);
        x.on_mut(&origin).fill(5)?;
        drop(guard);
        resume_panic(launch.join())
    })?;
    assert!(
        !was_enqueued.load(Ordering::SeqCst),
        "the launch came between the check and the record of the access"
    );
    Ok(())
}

/// An observer that would wait for its own thread gets an error.
#[driver_test]
fn observer_waiting_for_itself_gets_an_error(test: &TestDriver) -> TestResult {
    let [own, other, third] = [test.stream(), test.stream(), test.stream()];
    let x = Arc::new(buffer(&own, 1));
    let mut y = buffer(&other, 0);
    let graph = captured(test, |scope| y.on_mut(scope).copy_from_device(&*x))?;
    let results = Arc::new(Mutex::new(Vec::new()));
    // Another thread may hold the observer for a moment, but not the handles.
    let z = buffer(&third, 0);
    let used = Arc::new(Mutex::new(Some((graph, third, Arc::clone(&x), z))));
    let guard = {
        let used = Arc::clone(&used);
        let results = Arc::clone(&results);
        observe_calls(During::call_of(Function::cuEventRecord, move || {
            let mut used = used.lock();
            let (graph, third, x, z) = used
                .as_mut()
                .expect("the observer runs before the end of the test");
            let read = z.on_mut(third).copy_from_device(&**x);
            let launch = graph.launch(third);
            results.lock().extend([read, launch]);
        }))
    };
    let mut target = buffer(&other, 9);
    // The read waits for the write on the other stream: an event is recorded.
    target.on_mut(&other).copy_from_device(&*x)?;
    drop(guard);
    drop(used.lock().take());
    assert_eq!(values(&target), [1; LEN]);
    let results = std::mem::take(&mut *results.lock());
    assert_eq!(results.len(), 2, "the observer has run");
    results.into_iter().for_each(assert_reentrant);
    Ok(())
}

#[driver_test]
fn launch_during_an_access_is_an_error(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let mut x = buffer(&origin, 1);
    let graph = captured(test, |scope| x.on_mut(scope).fill(7))?;
    let result = Arc::new(Mutex::new(None));
    // Another thread may hold the observer for a moment, but not the handles.
    let launch = Arc::new(Mutex::new(Some((graph, origin.clone()))));
    let guard = {
        let launch = Arc::clone(&launch);
        let result = Arc::clone(&result);
        observe_calls(During::call_of(Function::cuMemsetD32Async, move || {
            let mut launch = launch.lock();
            let (graph, origin) = launch
                .as_mut()
                .expect("the observer runs before the end of the test");
            *result.lock() = Some(graph.launch(origin));
        }))
    };
    x.on_mut(&origin).fill(5)?;
    drop(guard);
    drop(launch.lock().take());
    let result = result.lock().take();
    assert_reentrant(result.ok_or("the observer was not called")?);
    assert_eq!(values(&x), [5; LEN]);
    Ok(())
}

#[test]
fn drivers_do_not_share_launches() -> TestResult {
    const DELAY: Duration = Duration::from_secs(2);
    let slow = Config::new().with_faults(
        FaultPlan::new().with(Fault::on(Function::cuGraphLaunch).always().delays(DELAY)),
    );
    on_simulator(slow, |slow, _| -> TestResult {
        on_simulator(Config::new(), |test, _| -> TestResult {
            let slow_stream = slow.stream();
            let origin = test.stream();
            let mut x = buffer(&slow_stream, 1);
            let mut y = buffer(&origin, 1);
            let mut delayed = captured(slow, |scope| x.on_mut(scope).fill(7))?;
            let mut graph = captured(test, |scope| y.on_mut(scope).fill(7))?;
            thread::scope(|scope| -> TestResult<_> {
                let (begin, begun) = mpsc::channel();
                let slow_launch = scope.spawn(move || -> TestResult {
                    begin.send(())?;
                    delayed.launch(&slow_stream)?;
                    Ok(())
                });
                begun.recv()?;
                thread::sleep(Duration::from_millis(20));
                let begin = Instant::now();
                graph.launch(&origin)?;
                y.on_mut(&origin).fill(5)?;
                assert!(
                    begin.elapsed() < DELAY / 2,
                    "it waited for the other driver"
                );
                resume_panic(slow_launch.join())
            })?;
            assert_eq!(values(&y), [5; LEN]);
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// A launch does not wait for a staged copy to the memory.
#[driver_test]
fn launch_does_not_wait_for_a_staged_copy(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let launching = test.stream();
    let options = StagingOptions::new()
        .with_threads(4)
        .with_buffer_bytes(1 << 18)
        .with_threshold(1 << 20);
    Staging::set_options(origin.context(), options)?;
    let source = vec![3_u32; 1 << 20];
    let mut x = DeviceBuffer::<u32>::zeroed(&origin, source.len())?;
    let mut graph = captured(test, |scope| x.slice_mut(..LEN)?.on_mut(scope).fill(7))?;
    let gate = Gate::on(&origin);
    x.on_mut(&origin).fill(1)?;
    thread::scope(|scope| -> TestResult<_> {
        let copying = scope.spawn(|| x.copy_from_slice(&source));
        thread::sleep(Duration::from_millis(50));
        let begin = Instant::now();
        graph.launch(&launching)?;
        assert!(
            !copying.is_finished() && begin.elapsed() < Duration::from_secs(2),
            "it waited for the device"
        );
        gate.open();
        resume_panic(copying.join())?;
        Ok(())
    })?;
    launching.synchronize()?;
    let copied = x.to_vec()?;
    assert!(
        copied[LEN..].iter().all(|value| *value == 3),
        "the copy is complete"
    );
    assert!(
        copied[..LEN].iter().all(|value| [3, 7].contains(value)),
        "each part has the value of one of the two writes"
    );
    Ok(())
}

/// A launch does not wait for a blocking copy of memory that it does not lease.
#[driver_test]
fn launch_ignores_unleased_blocking_copy(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let launching = test.stream();
    let mut x = buffer(&origin, 1);
    let mut y = buffer(&origin, 2);
    let _leases_x = captured(test, |scope| x.on_mut(scope).fill(7))?;
    let mut graph = captured(test, |scope| y.on_mut(scope).fill(5))?;
    // From the second access on, both are used on their stream without a lock.
    for _ in 0..2 {
        x.on_mut(&origin).fill(3)?;
        y.on_mut(&origin).fill(4)?;
    }
    let mut copied = Vec::new();
    assert_launch_does_not_wait(
        &mut graph,
        &launching,
        Function::cuMemcpyDtoHAsync_v2,
        || {
            copied = x.to_vec()?;
            Ok(())
        },
    )?;
    assert_eq!(copied, [3; LEN]);
    assert_eq!(values(&y), [5; LEN]);
    Ok(())
}

/// A launch does not wait for a copy of an array that it does not lease.
#[driver_test]
fn launch_ignores_unleased_array_copy(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let launching = test.stream();
    let shape = ArrayShape::new_1d(LEN);
    let array = Array::from_slice(&origin, &[1_u32; LEN], shape, ArrayFlags::empty())?;
    let mut y = buffer(&origin, 2);
    let _leases_array = captured(test, |scope| array.on(scope).copy_from_slice(&[7; LEN]))?;
    let mut graph = captured(test, |scope| y.on_mut(scope).fill(5))?;
    // From the second access on, both are used on their stream without a lock.
    for value in [3; 2] {
        array.copy_from_slice(&[value; LEN])?;
        y.on_mut(&origin).fill(4)?;
    }
    let mut copied = Vec::new();
    assert_launch_does_not_wait(&mut graph, &launching, Function::cuMemcpy3DAsync_v2, || {
        copied = array.to_vec()?;
        Ok(())
    })?;
    assert_eq!(copied, [3; LEN]);
    assert_eq!(values(&y), [5; LEN]);
    Ok(())
}

/// Launches a graph in the middle of a call of `function` that `copy` makes on another thread.
fn assert_launch_does_not_wait(
    graph: &mut GraphExec,
    launching: &Stream,
    function: Function,
    copy: impl FnOnce() -> TestResult + Send,
) -> TestResult {
    let (begun, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let copying = scope.spawn(|| -> TestResult {
            let begun = Mutex::new(begun);
            let may_end = Mutex::new(may_end);
            let guard = observe_calls(During::call_of(function, move || {
                begun.lock().send(()).expect("the test waits");
                may_end.lock().recv().expect("the test goes on");
            }));
            copy()?;
            drop(guard);
            Ok(())
        });
        has_begun.recv()?;
        let launched = scope.spawn(|| graph.launch(launching));
        let begin = Instant::now();
        while !launched.is_finished() && begin.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(1));
        }
        let has_waited = !launched.is_finished();
        end.send(())?;
        resume_panic(copying.join())?;
        resume_panic(launched.join())?;
        assert!(!has_waited, "the launch waited for a copy of other memory");
        Ok(())
    })
}

/// A leased buffer can be dropped by the end of a thread.
#[test]
fn buffer_drops_at_thread_exit() -> TestResult {
    thread_local! {
        static LAST: Mutex<Option<DeviceBuffer<u32>>> = const { Mutex::new(None) };
    }
    on_driver(|test| -> TestResult {
        let origin = test.stream();
        let mut x = buffer(&origin, 1);
        let mut y = buffer(&origin, 2);
        let mut graph = captured(test, |scope| {
            x.on_mut(scope).fill(7)?;
            y.on_mut(scope).copy_from_device(&x)
        })?;
        let stream = origin.clone();
        let ended = thread::spawn(move || {
            LAST.with(|last| {
                let mut last = last.lock();
                last.insert(x).on_mut(&stream).fill(3)
            })
        });
        resume_panic(ended.join())?;
        graph.launch(&origin)?;
        assert_eq!(values(&y), [7; LEN]);
        Ok(())
    })?;
    Ok(())
}

/// A capture keeps what other threads enqueue while it ends.
#[test]
fn ending_capture_keeps_other_work() -> TestResult {
    for round in 0..if cfg!(miri) { 1 } else { 60 } {
        on_driver(|test| -> TestResult {
            let context = test.context();
            let driver = test.driver();
            let is_over = AtomicBool::new(false);
            let graph = thread::scope(|scope| -> TestResult<_> {
                let (send, receive) = mpsc::channel::<Stream>();
                let is_over = &is_over;
                let launching = scope.spawn(move || -> TestResult {
                    let branch = receive.recv()?;
                    while !is_over.load(Ordering::Acquire) {
                        // The memory of this launch has no owner except the graph.
                        let library = Library::from_ptx(driver, NOTHING)?;
                        let kernel = library.kernel::<()>("nothing")?;
                        // SAFETY: the kernel accesses no memory.
                        unsafe { kernel.launch(&branch, LaunchConfig::new(1, 1), ()) }?;
                    }
                    branch.synchronize()?;
                    Ok(())
                });
                let graph = Graph::capture(&context, |scope| {
                    send.send(scope.fork()?).expect("the thread listens");
                    thread::sleep(Duration::from_micros(200 + 37 * round));
                    Ok::<_, Error>(())
                });
                is_over.store(true, Ordering::Release);
                resume_panic(launching.join())?;
                Ok(graph?)
            })?;
            let mut graph = graph.instantiate()?;
            let stream = test.stream();
            graph.launch(&stream)?;
            stream.synchronize()?;
            Ok(())
        })?;
    }
    Ok(())
}

/// Threads that launch and use the same memory never race.
#[test]
fn threads_never_race() -> TestResult {
    for seed in 0..if cfg!(miri) { 1 } else { 8 } {
        on_simulator(Config::new().with_seed(seed), |test, _| -> TestResult {
            let streams: [_; 4] = std::array::from_fn(|_| test.stream());
            let mut x = buffer(&streams[0], 1);
            let mut y = buffer(&streams[0], 2);
            let z = buffer(&streams[0], 3);
            let writer = captured(test, |scope| x.on_mut(scope).fill(7))?;
            let copier = captured(test, |scope| y.on_mut(scope).copy_from_device(&x))?;
            let reader = captured(test, |scope| x.on_mut(scope).copy_from_device(&z))?;
            let turns = AtomicUsize::new(0);
            thread::scope(|scope| -> TestResult {
                let mut threads = Vec::new();
                for (mut graph, [even, odd]) in
                    [(writer, [0, 1]), (copier, [2, 2]), (reader, [3, 0])]
                {
                    let streams = &streams;
                    let turns = &turns;
                    threads.push(scope.spawn(move || -> TestResult {
                        for turn in 0..60 {
                            let stream = if turn % 7 < 4 { even } else { odd };
                            graph.launch(&streams[stream])?;
                            turns.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(())
                    }));
                }
                let streams = &streams;
                let x = &mut x;
                threads.push(scope.spawn(move || -> TestResult {
                    for turn in 0..60_usize {
                        x.on_mut(&streams[turn % 3]).fill(5)?;
                        let mut copy = buffer(&streams[3], 0);
                        copy.on_mut(&streams[(turn + 1) % 3]).copy_from_device(x)?;
                    }
                    Ok(())
                }));
                for thread in threads {
                    resume_panic(thread.join())?;
                }
                Ok(())
            })?;
            assert_eq!(turns.into_inner(), 180);
            let expected = [vec![7; LEN], vec![5; LEN], vec![3; LEN]];
            assert!(
                expected.contains(&values(&x)),
                "no launch or access is half done"
            );
            Ok(())
        })?;
    }
    Ok(())
}

/// Inserted waits are counted on the stream that waits.
#[driver_test]
fn inserted_waits_count_on_the_waiting_stream(test: &TestDriver) -> TestResult {
    let origin = test.stream();
    let other = test.stream();
    let mut x = buffer(&origin, 1);
    let mut y = buffer(&other, 0);
    y.on_mut(&origin).copy_from_device(&x)?;
    assert_eq!(
        (origin.inserted_waits(), other.inserted_waits()),
        (1, 0),
        "the write of the target"
    );
    x.on_mut(&other).fill(2)?;
    assert_eq!(
        (origin.inserted_waits(), other.inserted_waits()),
        (1, 1),
        "the read of the source"
    );
    x.on_mut(&other).fill(3)?;
    assert_eq!(
        (origin.inserted_waits(), other.inserted_waits()),
        (1, 1),
        "a stream does not wait for itself"
    );
    Ok(())
}

/// Returns an executable graph for this many buffers, ready to launch.
fn executable(test: &TestDriver, buffers: &mut [DeviceBuffer<u32>]) -> TestResult<GraphExec> {
    captured(test, |scope| {
        buffers
            .iter_mut()
            .try_for_each(|buffer| buffer.on_mut(scope).fill(4))
    })
}

/// Launches in a row wait for nothing however many buffers they lease.
#[driver_test]
fn consecutive_launches_insert_no_waits(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for count in [1, 8, 64] {
        let mut buffers: Vec<_> = (0..count).map(|value| buffer(&stream, value)).collect();
        let mut graph = executable(test, &mut buffers)?;
        graph.launch(&stream)?;
        let waits = stream.inserted_waits();
        test.assert_calls(Function::cuEventRecord, 0, || graph.launch(&stream))?;
        assert_eq!(stream.inserted_waits(), waits, "{count} buffers");
        buffers[0].fill(9)?;
        graph.launch(&stream)?;
        buffers
            .iter()
            .for_each(|buffer| assert_eq!(values(buffer), [4; LEN]));
    }
    Ok(())
}
