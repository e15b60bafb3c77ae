//! Capture scopes: captured work, rejected operations, and the end of a scope.

use std::panic::{AssertUnwindSafe, catch_unwind};

use curium_driver::{
    Error, Event, EventFlags, Graph, GraphCache, GraphCacheOutcome, LaunchConfig, Library,
    SafeKernel, Stream,
};
use curium_memory::{
    Array, ArrayFlags, ArrayShape, DeviceBuffer, DeviceVec, MappedBuffer, PitchedBuffer, SyncAlloc,
    UnifiedBuffer,
};
use curium_tests::{TestDriver, TestResult, driver_test, kernels};

const LEN: usize = 64;

type Fill = SafeKernel<(&'static mut [u32], u32, u32)>;

/// Returns a kernel that sets each element to a value.
fn fill(test: &TestDriver) -> TestResult<Fill> {
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let kernel = library.kernel("fill")?;
    // SAFETY: the kernel writes only elements below the length argument, which is the length of the
    // buffer.
    unsafe { Ok(kernel.declare_safe()) }
}

fn config() -> LaunchConfig {
    LaunchConfig::for_elements(LEN)
}

fn buffer(stream: &Stream, value: u32) -> TestResult<DeviceBuffer<u32>> {
    Ok(DeviceBuffer::from_slice(stream, &[value; LEN])?)
}

fn values(buffer: &DeviceBuffer<u32>) -> TestResult<Vec<u32>> {
    Ok(buffer.to_vec()?)
}

/// Asserts that this crate returns an error with this reason before it calls the driver.
fn assert_refused<T>(result: Result<T, Error>, reason: &str) {
    let error = result
        .err()
        .expect("the operation would invalidate the capture");
    assert!(
        error.function().is_none() && error.to_string().contains(reason),
        "{error}"
    );
}

#[driver_test]
fn captured_work_runs_with_each_launch_and_not_before(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let fill = fill(test)?;
    let mut x = buffer(&stream, 1)?;
    let mut y = buffer(&stream, 2)?;
    let graph = Graph::capture(&context, |scope| {
        fill.launch(scope, config(), (&mut x, 7, LEN as u32))?;
        y.on_mut(scope).copy_from_device(&x)
    });
    let mut executable = graph.and_then(|graph| graph.instantiate())?;
    assert_eq!(
        (values(&x)?, values(&y)?),
        (vec![1; LEN], vec![2; LEN]),
        "nothing has run"
    );
    executable.launch(&stream)?;
    assert_eq!((values(&x)?, values(&y)?), (vec![7; LEN], vec![7; LEN]));
    y.fill(3)?;
    assert_eq!(values(&y)?, [3; LEN]);
    executable.launch(&stream)?;
    assert_eq!(values(&y)?, [7; LEN]);
    Ok(())
}

/// A scope that ends with an error or a panic ends its capture.
#[driver_test]
fn error_or_panic_ends_the_capture(test: &TestDriver) -> TestResult {
    let context = test.context();
    let fill = fill(test)?;
    let mut x = buffer(&test.stream(), 1)?;
    let mut clone = None;
    let failed = Graph::capture(&context, |scope| {
        clone = Some((**scope).clone());
        fill.launch(scope, config(), (&mut x, 7, LEN as u32))?;
        Err(Event::new(scope.context(), EventFlags::empty())
            .and_then(|event| scope.wait_event(&event))
            .expect_err("the event does not belong to the capture"))
    });
    assert_refused(failed, "was not recorded in that capture");
    let clone = clone.ok_or("the closure was not called")?;
    assert!(!clone.is_capturing()?);
    let event = Event::new(&context, EventFlags::empty())?;
    clone.wait_event(&event)?;
    fill.launch(&clone, config(), (&mut x, 9, LEN as u32))?;
    clone.synchronize()?;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        Graph::capture(&context, |scope| -> Result<(), Error> {
            fill.launch(scope, config(), (&mut x, 8, LEN as u32))?;
            panic!("part of the test")
        })
    }));
    assert!(panicked.is_err(), "the panic propagates");
    assert_eq!(values(&x)?, [9; LEN]);
    Graph::capture(&context, |_| Ok::<_, Error>(()))?;
    Ok(())
}

/// An operation that would end the capture is refused and the capture stays valid.
#[driver_test]
fn capture_ending_operation_is_refused(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let fill = fill(test)?;
    let outside = Event::new(&context, EventFlags::empty())?;
    outside.record(&stream)?;
    let inside = Event::new(&context, EventFlags::empty())?;
    let mut x = buffer(&stream, 1)?;
    let mut empty = Graph::new(&context).and_then(|graph| graph.instantiate())?;
    let graph = Graph::capture(&context, |scope| {
        fill.launch(scope, config(), (&mut x, 5, LEN as u32))?;
        assert_refused(empty.launch(scope), "Graph::add_child");
        assert_refused(scope.synchronize(), "is being captured");
        assert_refused(scope.is_finished(), "is being captured");
        assert_refused(
            scope.wait_event(&outside),
            "was not recorded in that capture",
        );
        inside.record(scope)?;
        assert_refused(stream.wait_event(&inside), "not part of that capture");
        let elsewhere =
            std::thread::scope(|threads| threads.spawn(|| stream.wait_event(&inside)).join());
        assert_refused(
            elsewhere.expect("the thread ends"),
            "was recorded in a capture",
        );
        assert_refused(inside.is_finished(), "was recorded in a capture");
        assert_refused(inside.synchronize(), "was recorded in a capture");
        assert_refused(
            DeviceBuffer::<u32, SyncAlloc>::uninit_in(scope, LEN, SyncAlloc),
            "use `StreamOrdered`",
        );
        assert_refused(
            MappedBuffer::<u32>::zeroed(scope, LEN),
            "the stream is being captured",
        );
        assert_refused(
            DeviceBuffer::<u32>::zeroed(scope, LEN)?.to_vec(),
            "is being captured",
        );
        assert_refused(DeviceVec::<u32>::new(scope), "the stream is being captured");
        assert_refused(
            PitchedBuffer::<u32>::zeroed(scope, LEN, 1),
            "the stream is being captured",
        );
        assert_refused(
            UnifiedBuffer::<u32>::zeroed(scope, LEN),
            "the stream is being captured",
        );
        assert_refused(
            Array::<u32>::new(scope, ArrayShape::new_1d(LEN), ArrayFlags::empty()),
            "the stream is being captured",
        );
        assert_refused(context.synchronize(), "cannot be captured");
        assert_refused(scope.launch_host_function(|| ()), "is being captured");
        scope.wait_event(&inside)?;
        context.memory_info()?;
        drop(DeviceBuffer::<u32, SyncAlloc>::uninit_in(
            &stream, LEN, SyncAlloc,
        )?);
        Ok::<_, Error>(())
    });
    let mut executable = graph.and_then(|graph| graph.instantiate())?;
    executable.launch(&stream)?;
    assert_eq!(values(&x)?, [5; LEN]);
    inside.record(&stream)?;
    inside.synchronize()?;
    Ok(())
}

/// Forked work that shares buffers is ordered and joined.
#[driver_test]
fn forked_work_is_ordered_and_joined(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let fill = fill(test)?;
    let mut x = buffer(&stream, 1)?;
    let mut y = buffer(&stream, 2)?;
    let mut z = buffer(&stream, 3)?;
    let graph = Graph::capture(&context, |scope| {
        let one = scope.fork()?;
        let other = scope.fork()?;
        fill.launch(&one, config(), (&mut x, 4, LEN as u32))?;
        y.on_mut(&other).copy_from_device(&x)?;
        fill.launch(&one, config(), (&mut x, 6, LEN as u32))?;
        scope.join(&one)?;
        z.on_mut(scope).copy_from_device(&x)?;
        assert_refused(scope.join(&stream), "does not belong to the capture");
        Ok(())
    });
    let mut executable = graph.and_then(|graph| graph.instantiate())?;
    for _ in 0..3 {
        executable.launch(&stream)?;
        assert_eq!(
            (values(&x)?, values(&y)?, values(&z)?),
            (vec![6; LEN], vec![4; LEN], vec![6; LEN])
        );
    }
    Ok(())
}

#[driver_test]
fn streams_return_the_capture_they_belong_to(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let number = |stream: &Stream| stream.capture_number().expect("the stream is live");
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let graph = Graph::capture(&context, |scope| {
            let branch = scope.fork()?;
            assert_eq!((number(&branch), number(&stream)), (number(scope), None));
            numbers.push(number(scope).expect("the scope is captured"));
            Ok::<_, Error>(())
        });
        graph?;
    }
    assert_ne!(numbers[0], numbers[1]);
    Ok(())
}

/// Memory allocated in a capture exists while the graph runs only.
#[driver_test]
fn captured_allocation_lives_during_the_launch(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let fill = fill(test)?;
    let mut result = buffer(&stream, 0)?;
    let mut leaked = None;
    let graph = Graph::capture(&context, |scope| {
        let mut scratch = DeviceBuffer::<u32>::uninit(scope, LEN)?;
        fill.launch(scope, config(), (&mut scratch, 8, LEN as u32))?;
        result.on_mut(scope).copy_from_device(&scratch)?;
        drop(scratch);
        let mut other = DeviceBuffer::<u32>::uninit(scope, LEN)?;
        fill.launch(scope, config(), (&mut other, 9, LEN as u32))?;
        assert_refused(other.on_mut(&stream).fill(1), "is not part of that capture");
        leaked = Some(other);
        Ok(())
    });
    let mut executable = graph.and_then(|graph| graph.instantiate())?;
    let mut leaked = leaked.ok_or("the closure was not called")?;
    assert_refused(
        leaked.on_mut(&stream).fill(1),
        "exists only while that graph runs",
    );
    assert_refused(leaked.fill(1), "exists only while that graph runs");
    for _ in 0..2 {
        executable.launch(&stream)?;
        assert_eq!(values(&result)?, [8; LEN]);
        result.fill(0)?;
    }
    Ok(())
}

/// A graph cache uses the cheapest operation and returns which.
#[driver_test]
fn graph_cache_uses_the_cheapest_operation(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let fill = fill(test)?;
    let mut x = buffer(&stream, 0)?;
    let mut replays = GraphCache::with_capacity(2);
    let mut step = |key, value: u32, times: usize, x: &mut DeviceBuffer<u32>| -> TestResult<_> {
        let replayed = replays.run(&stream, key, (value, times), |stream| {
            (0..times).try_for_each(|_| fill.launch(stream, config(), (&mut *x, value, LEN as u32)))
        })?;
        assert_eq!(values(x)?, [value; LEN], "after {replayed:?}");
        Ok(replayed)
    };
    assert!(matches!(
        step("a", 1, 1, &mut x)?,
        GraphCacheOutcome::Captured
    ));
    assert!(matches!(
        step("a", 1, 1, &mut x)?,
        GraphCacheOutcome::Launched
    ));
    assert!(matches!(
        step("a", 2, 1, &mut x)?,
        GraphCacheOutcome::Updated
    ));
    assert!(matches!(
        step("a", 2, 1, &mut x)?,
        GraphCacheOutcome::Launched
    ));
    assert!(matches!(
        step("a", 3, 2, &mut x)?,
        GraphCacheOutcome::Recaptured
    ));
    assert!(matches!(
        step("b", 4, 1, &mut x)?,
        GraphCacheOutcome::Captured
    ));
    assert!(matches!(
        step("c", 5, 1, &mut x)?,
        GraphCacheOutcome::Captured
    ));
    assert!(matches!(
        step("b", 4, 1, &mut x)?,
        GraphCacheOutcome::Launched
    ));
    assert!(
        matches!(step("a", 3, 2, &mut x)?, GraphCacheOutcome::Captured),
        "it was not the least recently used"
    );
    assert_eq!(
        (
            replays.len(),
            replays.counts().evicted,
            replays.counts().captured
        ),
        (2, 2, 4)
    );
    Ok(())
}

#[driver_test]
fn replay_is_captured(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let mut x = buffer(&stream, 0)?;
    let mut replays = GraphCache::new();
    let mut step = |stream: &Stream| {
        replays
            .run(stream, (), (), |stream| x.on_mut(stream).fill(7))
            .map(|replayed| match replayed {
                GraphCacheOutcome::Ran(None) => "captured",
                GraphCacheOutcome::Captured => "new",
                GraphCacheOutcome::Launched => "launched",
                other => panic!("{other:?}"),
            })
    };
    assert_eq!(step(&stream)?, "new");
    let graph = Graph::capture(&context, |scope| {
        step(scope).map(|what| assert_eq!(what, "captured"))
    });
    assert_eq!(step(&stream)?, "launched");
    x.fill(0)?;
    let mut executable = graph.and_then(|graph| graph.instantiate())?;
    executable.launch(&stream)?;
    assert_eq!(values(&x)?, [7; LEN]);
    Ok(())
}

#[driver_test]
fn work_that_cannot_be_captured_is_enqueued_directly(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut x = buffer(&stream, 0)?;
    let mut replays = GraphCache::new();
    for round in 0..2 {
        let replayed = replays.run(&stream, (), (), |stream| {
            x.on_mut(stream).fill(7)?;
            stream.synchronize()
        });
        match replayed? {
            GraphCacheOutcome::Ran(Some(reason)) if round == 0 => {
                assert!(reason.to_string().contains("is being captured"));
            }
            GraphCacheOutcome::Ran(None) if round == 1 => {}
            other => panic!("{other:?} in round {round}"),
        }
        assert_eq!(values(&x)?, [7; LEN]);
    }
    assert_eq!(replays.counts().ran, 2);
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{Graph, GraphCache, GraphCacheOutcome, GraphExec, Result};
    use curium_memory::DeviceBuffer;

    use crate::operations::{Fixture, LEN, Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Graph::capture", |fixture| made(captured(fixture)?)),
        ("CaptureScope::fork", |fixture| {
            let Fixture {
                context,
                buffer,
                target,
                ..
            } = fixture;
            made(Graph::capture(context, |scope| {
                let branch = scope.fork()?;
                buffer.on_mut(&branch).fill(3)?;
                target.on_mut(scope).copy_from_device(buffer)
            })?)
        }),
        ("CaptureScope::join", |fixture| {
            made(Graph::capture(&fixture.context, |scope| {
                let branch = scope.fork()?;
                drop(DeviceBuffer::<u32>::zeroed(&branch, LEN)?);
                scope.join(&branch)
            })?)
        }),
        ("CaptureScope::add_host", |fixture| {
            made(Graph::capture(&fixture.context, |scope| {
                scope.add_host(scope, || {})
            })?)
        }),
        ("Stream::capture_number", |fixture| {
            made(Graph::capture(&fixture.context, |scope| {
                scope.capture_number().map(drop)
            })?)
        }),
        ("Graph::capture, of a slice", |fixture| {
            let target = &mut fixture.target;
            made(Graph::capture(&fixture.context, |scope| {
                target
                    .on_mut(scope)
                    .copy_from_device(&DeviceBuffer::from_slice(scope, &[1; LEN])?)
            })?)
        }),
        ("GraphCache::run", |fixture| {
            let Fixture { stream, buffer, .. } = fixture;
            let mut replays = GraphCache::new();
            for value in [1, 1, 2] {
                let replayed = replays.run(stream, (), value, |stream| {
                    buffer.on_mut(stream).fill(value)
                })?;
                // Work that cannot be captured runs directly, and the result contains the reason.
                if let GraphCacheOutcome::Ran(Some(error)) = replayed {
                    return Err(error);
                }
            }
            stream.synchronize()?;
            made(replays)
        }),
        ("Stream::is_capturing", |fixture| {
            made(fixture.stream.is_capturing()?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    /// Returns a graph that writes the fixture's buffer and its mapped memory.
    pub(crate) fn captured(fixture: &mut Fixture) -> Result<GraphExec> {
        let Fixture {
            context,
            buffer,
            mapped,
            unified,
            ..
        } = fixture;
        let graph = Graph::capture(context, |scope| {
            buffer.on_mut(scope).fill(3)?;
            mapped.on_mut(scope).fill(4)?;
            unified.on_mut(scope).fill(5)
        })?;
        graph.instantiate()
    }
}
