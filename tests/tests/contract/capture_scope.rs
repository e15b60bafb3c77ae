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
use curium_tests::{TestDriver, kernels, on_driver};

const LEN: usize = 64;

type Fill = SafeKernel<(&'static mut [u32], u32, u32)>;

/// Returns a kernel that sets each element to a value.
fn fill(test: &TestDriver) -> Fill {
    let library = Library::from_ptx(test.driver(), kernels::FILL).expect("the PTX is valid");
    let kernel = library.kernel("fill").expect("the kernel is there");
    // SAFETY: the kernel writes only elements below the length argument, which is the length of the buffer.
    unsafe { kernel.declare_safe() }
}

fn config() -> LaunchConfig {
    LaunchConfig::for_elements(LEN as u32)
}

fn buffer(stream: &Stream, value: u32) -> DeviceBuffer<u32> {
    DeviceBuffer::from_slice(stream, &[value; LEN]).expect("memory suffices")
}

fn values(buffer: &DeviceBuffer<u32>) -> Vec<u32> {
    buffer.to_vec().expect("the buffer can be read")
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

#[test]
fn captured_work_runs_with_each_launch_and_not_before() {
    on_driver(|test| {
        let (context, stream) = (test.context(), test.stream());
        let fill = fill(test);
        let (mut x, mut y) = (buffer(&stream, 1), buffer(&stream, 2));
        let graph = Graph::capture(&context, |scope| {
            fill.launch(scope, config(), (&mut x, 7, LEN as u32))?;
            y.as_slice_mut().copy_from_device_on(scope, &x)
        });
        let mut executable = graph
            .and_then(|graph| graph.instantiate())
            .expect("the graph is valid");
        assert_eq!(
            (values(&x), values(&y)),
            (vec![1; LEN], vec![2; LEN]),
            "nothing has run"
        );
        executable.launch(&stream).expect("it can be launched");
        assert_eq!((values(&x), values(&y)), (vec![7; LEN], vec![7; LEN]));
        y.as_slice_mut().fill(3).expect("the owner may write");
        assert_eq!(values(&y), [3; LEN]);
        executable.launch(&stream).expect("it can be launched");
        assert_eq!(values(&y), [7; LEN]);
    });
}

#[test]
fn scope_that_ends_with_an_error_or_a_panic_ends_its_capture() {
    on_driver(|test| {
        let (context, fill) = (test.context(), fill(test));
        let mut x = buffer(&test.stream(), 1);
        let mut clone = None;
        let failed = Graph::capture(&context, |scope| {
            clone = Some((**scope).clone());
            fill.launch(scope, config(), (&mut x, 7, LEN as u32))?;
            Err(Event::new(scope.context(), EventFlags::empty())
                .and_then(|event| scope.wait_event(&event))
                .expect_err("the event does not belong to the capture"))
        });
        assert_refused(failed, "was not recorded in that capture");
        let clone = clone.expect("the work was called");
        assert!(!clone.is_capturing().expect("the stream is live"));
        let event = Event::new(&context, EventFlags::empty()).expect("an event can be created");
        clone.wait_event(&event).expect("the capture has ended");
        fill.launch(&clone, config(), (&mut x, 9, LEN as u32))
            .expect("the capture has ended");
        clone.synchronize().expect("the work runs");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            Graph::capture(&context, |scope| -> Result<(), Error> {
                fill.launch(scope, config(), (&mut x, 8, LEN as u32))?;
                panic!("part of the test")
            })
        }));
        assert!(panicked.is_err(), "the panic propagates");
        assert_eq!(values(&x), [9; LEN]);
        Graph::capture(&context, |_| Ok::<_, Error>(())).expect("another capture can begin");
    });
}

#[test]
fn operation_that_would_end_the_capture_is_refused_and_the_capture_stays_valid() {
    on_driver(|test| {
        let (context, stream, fill) = (test.context(), test.stream(), fill(test));
        let outside = Event::new(&context, EventFlags::empty()).expect("an event can be created");
        outside.record(&stream).expect("the stream is live");
        let inside = Event::new(&context, EventFlags::empty()).expect("an event can be created");
        let mut x = buffer(&stream, 1);
        let mut empty = Graph::new(&context)
            .and_then(|graph| graph.instantiate())
            .expect("a graph may be empty");
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
            assert_refused(stream.wait_event(&inside), "was recorded in a capture");
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
        let mut executable = graph
            .and_then(|graph| graph.instantiate())
            .expect("nothing has ended the capture");
        executable.launch(&stream).expect("it can be launched");
        assert_eq!(values(&x), [5; LEN]);
        inside
            .record(&stream)
            .expect("the event is recorded outside a capture");
        inside.synchronize().expect("the stream is idle");
    });
}

#[test]
fn forked_work_that_shares_buffers_is_ordered_and_joined() {
    on_driver(|test| {
        let (context, stream, fill) = (test.context(), test.stream(), fill(test));
        let (mut x, mut y, mut z) = (buffer(&stream, 1), buffer(&stream, 2), buffer(&stream, 3));
        let graph = Graph::capture(&context, |scope| {
            let (one, other) = (scope.fork()?, scope.fork()?);
            fill.launch(&one, config(), (&mut x, 4, LEN as u32))?;
            y.as_slice_mut().copy_from_device_on(&other, &x)?;
            fill.launch(&one, config(), (&mut x, 6, LEN as u32))?;
            scope.join(&one)?;
            z.as_slice_mut().copy_from_device_on(scope, &x)?;
            assert_refused(scope.join(&stream), "does not belong to the capture");
            Ok(())
        });
        let mut executable = graph
            .and_then(|graph| graph.instantiate())
            .expect("the branches are joined");
        for _ in 0..3 {
            executable.launch(&stream).expect("it can be launched");
            assert_eq!(
                (values(&x), values(&y), values(&z)),
                (vec![6; LEN], vec![4; LEN], vec![6; LEN])
            );
        }
    });
}

#[test]
fn streams_return_the_capture_they_belong_to() {
    on_driver(|test| {
        let (context, stream) = (test.context(), test.stream());
        let number = |stream: &Stream| stream.capture_number().expect("the stream is live");
        let mut numbers = Vec::new();
        for _ in 0..2 {
            let graph = Graph::capture(&context, |scope| {
                let branch = scope.fork()?;
                assert_eq!((number(&branch), number(&stream)), (number(scope), None));
                numbers.push(number(scope).expect("the scope is captured"));
                Ok::<_, Error>(())
            });
            graph.expect("a query adds nothing to the graph");
        }
        assert_ne!(numbers[0], numbers[1]);
    });
}

#[test]
fn memory_allocated_in_a_capture_exists_while_the_graph_runs_only() {
    on_driver(|test| {
        let (context, stream, fill) = (test.context(), test.stream(), fill(test));
        let mut result = buffer(&stream, 0);
        let mut leaked = None;
        let graph = Graph::capture(&context, |scope| {
            let mut scratch = DeviceBuffer::<u32>::uninit(scope, LEN)?;
            fill.launch(scope, config(), (&mut scratch, 8, LEN as u32))?;
            result.as_slice_mut().copy_from_device_on(scope, &scratch)?;
            drop(scratch);
            let mut other = DeviceBuffer::<u32>::uninit(scope, LEN)?;
            fill.launch(scope, config(), (&mut other, 9, LEN as u32))?;
            assert_refused(
                other.as_slice_mut().fill_on(&stream, 1),
                "is not part of that capture",
            );
            leaked = Some(other);
            Ok(())
        });
        let mut executable = graph
            .and_then(|graph| graph.instantiate())
            .expect("the graph is valid");
        let mut leaked = leaked.expect("the work was called");
        assert_refused(
            leaked.as_slice_mut().fill_on(&stream, 1),
            "exists only while that graph runs",
        );
        assert_refused(
            leaked.as_slice_mut().fill(1),
            "exists only while that graph runs",
        );
        for _ in 0..2 {
            executable
                .launch(&stream)
                .expect("every allocation is freed");
            assert_eq!(values(&result), [8; LEN]);
            result.as_slice_mut().fill(0).expect("the owner may write");
        }
    });
}

#[test]
fn graph_cache_uses_the_cheapest_operation_and_returns_which() {
    on_driver(|test| {
        let (stream, fill) = (test.stream(), fill(test));
        let mut x = buffer(&stream, 0);
        let mut replays = GraphCache::with_capacity(2);
        let mut step = |key, value: u32, times: usize, x: &mut DeviceBuffer<u32>| {
            let replayed = replays.run(&stream, key, (value, times), |stream| {
                (0..times)
                    .try_for_each(|_| fill.launch(stream, config(), (&mut *x, value, LEN as u32)))
            });
            let replayed = replayed.expect("the work is correct");
            assert_eq!(values(x), [value; LEN], "after {replayed:?}");
            replayed
        };
        assert!(matches!(
            step("a", 1, 1, &mut x),
            GraphCacheOutcome::Captured
        ));
        assert!(matches!(
            step("a", 1, 1, &mut x),
            GraphCacheOutcome::Launched
        ));
        assert!(matches!(
            step("a", 2, 1, &mut x),
            GraphCacheOutcome::Updated
        ));
        assert!(matches!(
            step("a", 2, 1, &mut x),
            GraphCacheOutcome::Launched
        ));
        assert!(matches!(
            step("a", 3, 2, &mut x),
            GraphCacheOutcome::Recaptured
        ));
        assert!(matches!(
            step("b", 4, 1, &mut x),
            GraphCacheOutcome::Captured
        ));
        assert!(matches!(
            step("c", 5, 1, &mut x),
            GraphCacheOutcome::Captured
        ));
        assert!(matches!(
            step("b", 4, 1, &mut x),
            GraphCacheOutcome::Launched
        ));
        assert!(
            matches!(step("a", 3, 2, &mut x), GraphCacheOutcome::Captured),
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
    });
}

#[test]
fn replay_in_a_capture_is_a_part_of_it() {
    on_driver(|test| {
        let (context, stream) = (test.context(), test.stream());
        let (mut x, mut replays) = (buffer(&stream, 0), GraphCache::new());
        let mut step = |stream: &Stream| {
            replays
                .run(stream, (), (), |stream| x.as_slice_mut().fill_on(stream, 7))
                .map(|replayed| match replayed {
                    GraphCacheOutcome::Ran(None) => "captured",
                    GraphCacheOutcome::Captured => "new",
                    GraphCacheOutcome::Launched => "launched",
                    other => panic!("{other:?}"),
                })
        };
        assert_eq!(step(&stream).expect("the work is correct"), "new");
        let graph = Graph::capture(&context, |scope| {
            step(scope).map(|what| assert_eq!(what, "captured"))
        });
        assert_eq!(step(&stream).expect("the work is correct"), "launched");
        x.as_slice_mut().fill(0).expect("the owner may write");
        let mut executable = graph
            .and_then(|graph| graph.instantiate())
            .expect("the graph is valid");
        executable.launch(&stream).expect("it can be launched");
        assert_eq!(values(&x), [7; LEN]);
    });
}

#[test]
fn work_that_cannot_be_captured_is_enqueued_directly() {
    on_driver(|test| {
        let stream = test.stream();
        let mut x = buffer(&stream, 0);
        let mut replays = GraphCache::new();
        for round in 0..2 {
            let replayed = replays.run(&stream, (), (), |stream| {
                x.as_slice_mut().fill_on(stream, 7)?;
                stream.synchronize()
            });
            match replayed.expect("the work is correct") {
                GraphCacheOutcome::Ran(Some(reason)) if round == 0 => {
                    assert!(reason.to_string().contains("is being captured"));
                }
                GraphCacheOutcome::Ran(None) if round == 1 => {}
                other => panic!("{other:?} in round {round}"),
            }
            assert_eq!(values(&x), [7; LEN]);
        }
        assert_eq!(replays.counts().ran, 2);
    });
}

pub(crate) mod operations {
    use curium_driver::{Graph, GraphCache, GraphCacheOutcome, GraphExec, Result};
    use curium_memory::DeviceBuffer;

    use crate::operations::{Fixture, LEN, Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
                buffer.as_slice_mut().fill_on(&branch, 3)?;
                target.as_slice_mut().copy_from_device_on(scope, buffer)
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
                    .as_slice_mut()
                    .copy_from_device_on(scope, &DeviceBuffer::from_slice(scope, &[1; LEN])?)
            })?)
        }),
        ("GraphCache::run", |fixture| {
            let Fixture { stream, buffer, .. } = fixture;
            let mut replays = GraphCache::new();
            for value in [1, 1, 2] {
                let replayed = replays.run(stream, (), value, |stream| {
                    buffer.as_slice_mut().fill_on(stream, value)
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
            buffer.as_slice_mut().fill_on(scope, 3)?;
            mapped.as_slice_mut().fill_on(scope, 4)?;
            unified.as_slice_mut().fill_on(scope, 5)
        })?;
        graph.instantiate()
    }
}
