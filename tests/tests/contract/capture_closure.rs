//! Operations within the closure of a capture: a thread may enqueue work on the scope or its forks, and nothing that
//! the graph would miss.

mod twins;

use curium_driver::{Error, Event, EventFlags, Graph, Kernel, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, on_driver};

const LEN: usize = 64;

/// Doubles each element.
const DOUBLE: &str =
    ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry double(.param .u64 x, .param .u32 n) {
    .reg .pred %out; .reg .u32 %i; .reg .u32 %n; .reg .u64 %at; .reg .u64 %x; .reg .f32 %v;
    mov.u32 %i, %tid.x;
    ld.param.u32 %n, [n];
    setp.ge.u32 %out, %i, %n;
    @%out ret;
    ld.param.u64 %x, [x];
    cvta.to.global.u64 %x, %x;
    mul.wide.u32 %at, %i, 4;
    add.s64 %x, %x, %at;
    ld.global.f32 %v, [%x];
    add.f32 %v, %v, %v;
    st.global.f32 [%x], %v;
    ret;
}";

type Double = Kernel<(&'static mut [f32], u32)>;

fn double(test: &TestDriver) -> Double {
    let library = Library::from_ptx(test.driver(), DOUBLE).expect("the PTX is valid");
    library.kernel("double").expect("the kernel is there")
}

fn launch(kernel: &Double, stream: &Stream, buffer: &mut DeviceBuffer<f32>) -> Result<(), Error> {
    // SAFETY: the kernel writes only elements below the length argument, which is the length of the buffer.
    unsafe {
        kernel.launch(
            stream,
            LaunchConfig::new(1, LEN as u32),
            (buffer, LEN as u32),
        )
    }
}

/// Asserts that this crate returns an error with this reason before it calls the driver.
fn assert_refused<T>(result: Result<T, Error>, reason: &str) {
    let error = result.err().expect("the graph would not contain it");
    assert!(
        error.function().is_none() && error.to_string().contains(reason),
        "{error}"
    );
}

#[test]
fn fill_that_the_graph_would_miss_is_refused_and_the_one_that_is_captured_gives_two() {
    on_driver(|test| {
        let (context, stream, double) = (test.context(), test.stream(), double(test));
        let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32; LEN]).expect("memory suffices");
        let refused = Graph::capture(&context, |scope| {
            x.as_slice_mut().fill(1.0)?;
            launch(&double, scope, &mut x)
        });
        // A regression test: the operation ran immediately instead, and three launches gave 8.
        assert_refused(refused, "fill_on(scope, …)");
        let graph = Graph::capture(&context, |scope| {
            x.as_slice_mut().fill_on(scope, 1.0)?;
            launch(&double, scope, &mut x)
        });
        let graph = graph.expect("both are captured");
        assert_eq!(graph.nodes().expect("it can be queried").len(), 2);
        let mut executable = graph.instantiate().expect("the graph is valid");
        for _ in 0..3 {
            executable.launch(&stream).expect("it can be launched");
        }
        assert_eq!(x.to_vec().expect("the buffer can be read"), [2.0; LEN]);
    });
}

#[test]
fn work_of_the_driver_on_other_streams_is_refused_in_the_closure_and_on_other_threads_it_is_not() {
    on_driver(|test| {
        let (context, stream, double) = (test.context(), test.stream(), double(test));
        let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32; LEN]).expect("memory suffices");
        let event = Event::new(&context, EventFlags::empty()).expect("an event can be created");
        event.record(&stream).expect("the stream is live");
        let mut empty = Graph::new(&context)
            .and_then(|graph| graph.instantiate())
            .expect("a graph may be empty");
        let scope_or_fork = "pass the capture scope or one of its forks";
        let graph = Graph::capture(&context, |scope| {
            assert_refused(launch(&double, &stream, &mut x), scope_or_fork);
            assert_refused(event.record(&stream), scope_or_fork);
            assert_refused(stream.wait_event(&event), scope_or_fork);
            assert_refused(x.as_slice_mut().fill_on(&stream, 3.0), scope_or_fork);
            assert_refused(stream.synchronize(), "cannot be captured");
            assert_refused(event.synchronize(), "cannot be captured");
            assert_refused(context.synchronize(), "cannot be captured");
            assert_refused(empty.launch(&stream), "no graph can contain it");
            assert_refused(empty.upload(&stream), "no graph can contain it");
            assert_refused(
                stream.launch_host_function(|| ()),
                "`CaptureScope::add_host` adds a function to the graph",
            );
            assert_refused(
                pollster::block_on(stream.completion()),
                "no graph can contain it",
            );
            assert!(
                stream.is_finished().is_ok() && event.is_finished().is_ok(),
                "a query enqueues nothing"
            );
            std::thread::scope(|threads| {
                let other = threads
                    .spawn(|| launch(&double, &stream, &mut x).and_then(|()| stream.synchronize()));
                other
                    .join()
                    .expect("the thread ends")
                    .expect("other threads are not restricted");
            });
            launch(&double, &scope.fork()?, &mut x)
        });
        assert_eq!(
            graph
                .expect("the fork belongs to the capture")
                .nodes()
                .expect("it can be queried")
                .len(),
            1
        );
        assert_eq!(x.to_vec().expect("the buffer can be read"), [2.0; LEN]);
    });
}

#[test]
fn operands_without_elements_and_advice_are_refused_as_well() {
    use curium_memory::copy::CopyBatch;
    use curium_memory::{
        DecompressBatch, Extent, HostPitchedSlice, HostPitchedSliceMut, MemoryAdvice,
        MemoryLocation, Pitch, UnifiedBuffer,
    };

    const NOTHING: Extent = Extent::new_2d(0, 4);
    const TIGHT: Pitch = Pitch::tight::<u32>(NOTHING);
    on_driver(|test| {
        let stream = test.stream();
        let mut x = DeviceBuffer::<u32>::from_slice(&stream, &[1; LEN]).expect("memory suffices");
        let source = DeviceBuffer::<u32>::from_slice(&stream, &[1; LEN]).expect("memory suffices");
        let device = MemoryLocation::from(&test.device());
        let managed = UnifiedBuffer::from_slice(&stream, &[1_u32; LEN]).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |_| {
            let is_missed = "missing from the graph";
            // A regression test: all of these returned success.
            assert_refused(x.slice_mut(..0)?.fill_on(&stream, 1), is_missed);
            assert_refused(
                x.slice_mut(..0)?
                    .copy_from_device_on(&stream, &source.slice(..0)?),
                is_missed,
            );
            assert_refused(
                x.slice_mut(..0)?.copy_from_slice_on(&stream, &[]),
                is_missed,
            );
            assert_refused(x.slice(..0)?.copy_to_slice_on(&stream, &mut []), is_missed);
            assert_refused(
                x.slice_mut(..0)?
                    .pitched(NOTHING, TIGHT)?
                    .fill_on(&stream, 1),
                is_missed,
            );
            let from = source.slice(..0)?.pitched(NOTHING, TIGHT)?;
            assert_refused(
                x.slice_mut(..0)?
                    .pitched(NOTHING, TIGHT)?
                    .copy_from_on(&stream, &from),
                is_missed,
            );
            let host = HostPitchedSlice::new(&[], NOTHING, TIGHT)?;
            assert_refused(
                x.slice_mut(..0)?
                    .pitched(NOTHING, TIGHT)?
                    .copy_from_host_on(&stream, &host),
                is_missed,
            );
            let mut host: [u32; 0] = [];
            let mut host = HostPitchedSliceMut::new(&mut host, NOTHING, TIGHT)?;
            assert_refused(from.copy_to_host_on(&stream, &mut host), is_missed);
            assert_refused(CopyBatch::new().enqueue(&stream), is_missed);
            assert_refused(DecompressBatch::new().enqueue(&stream), is_missed);
            assert_refused(managed.prefetch(&stream, 0..0, device), is_missed);
            assert_refused(managed.advise(.., MemoryAdvice::ReadMostly), is_missed);
            Ok::<_, Error>(())
        });
        assert!(
            graph
                .expect("the capture is intact")
                .nodes()
                .expect("it can be queried")
                .is_empty()
        );
    });
}

#[test]
fn closure_within_a_closure_enqueues_on_its_own_scope_only() {
    on_driver(|test| {
        let (context, double) = (test.context(), double(test));
        let mut x =
            DeviceBuffer::from_slice(&test.stream(), &[1.0_f32; LEN]).expect("memory suffices");
        let outer = Graph::capture(&context, |outer| {
            let inner = Graph::capture(&context, |inner| {
                assert_refused(launch(&double, outer, &mut x), "pass the capture scope");
                launch(&double, inner, &mut x)
            });
            assert_eq!(inner?.nodes()?.len(), 1);
            launch(&double, outer, &mut x)?;
            launch(&double, outer, &mut x)
        });
        assert_eq!(
            outer
                .expect("both are captured")
                .nodes()
                .expect("it can be queried")
                .len(),
            2
        );
    });
}

#[test]
fn thread_is_unrestricted_when_the_closure_has_failed_or_panicked() {
    on_driver(|test| {
        let (context, stream, double) = (test.context(), test.stream(), double(test));
        let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32; LEN]).expect("memory suffices");
        Graph::capture(&context, |_| {
            Err(Error::argument("work", "fails as it should"))
        })
        .expect_err("the work fails");
        launch(&double, &stream, &mut x).expect("the closure has ended");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Graph::capture(&context, |_| -> Result<(), Error> {
                panic!("part of the test")
            })
        }));
        assert!(panicked.is_err(), "the panic propagates");
        launch(&double, &stream, &mut x).expect("the closure has ended");
        assert_eq!(x.to_vec().expect("the buffer can be read"), [4.0; LEN]);
    });
}

#[test]
fn dropping_and_closing_within_the_closure_is_no_work_of_the_graph_and_works() {
    on_driver(|test| {
        let (context, stream) = (test.context(), test.stream());
        let (x, y) = (zeroes(&stream), zeroes(&stream));
        let graph = Graph::capture(&context, |_| {
            drop(x);
            y.close().map_err(|returned| returned.error)
        });
        assert!(
            graph
                .expect("neither is refused")
                .nodes()
                .expect("it can be queried")
                .is_empty()
        );
    });
}

fn zeroes(stream: &Stream) -> DeviceBuffer<f32> {
    DeviceBuffer::zeroed(stream, LEN).expect("memory suffices")
}

#[test]
fn closure_may_return_any_error_that_an_error_of_this_crate_becomes() {
    #[derive(Debug)]
    enum Own {
        Driver(Error),
        Other,
    }
    impl From<Error> for Own {
        fn from(error: Error) -> Self {
            Self::Driver(error)
        }
    }
    on_driver(|test| {
        let (context, stream, double) = (test.context(), test.stream(), double(test));
        let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32; LEN]).expect("memory suffices");
        let captured = Graph::capture(&context, |scope| -> Result<(), Own> {
            launch(&double, scope, &mut x)?;
            Ok(())
        });
        captured.expect("the work is captured");
        let failed = Graph::capture(&context, |_| Err(Own::Other)).expect_err("the work fails");
        assert!(matches!(failed, Own::Other));
        let failed = Graph::capture(&context, |_| -> Result<(), Own> {
            Ok(launch(&double, &stream, &mut x)?)
        });
        let Err(Own::Driver(error)) = failed else {
            panic!("the launch is refused")
        };
        assert_refused(Err::<(), _>(error), "pass the capture scope");
        let boxed = Graph::capture(&context, |_| -> Result<(), Box<dyn std::error::Error>> {
            Err("text")?
        });
        assert_eq!(boxed.expect_err("the work fails").to_string(), "text");
        let mut graph = Graph::new(&context).expect("a graph can be created");
        let failed = graph
            .capture_into(&[], |_| Err(Own::Other))
            .expect_err("the work fails");
        assert!(matches!(failed, Own::Other));
        let mut replays = curium_driver::GraphCache::new();
        let ran = replays
            .run(&stream, (), (), |_| Err(Own::Other))
            .expect_err("the work fails");
        assert!(matches!(ran, Own::Other));
    });
}

/// Functions that enqueue work or wait on the host, by prefix. A deallocation may free in stream order and wait for a
/// stream.
#[cfg(not(miri))]
const ENQUEUING: &[&str] = &[
    "cuMemcpy",
    "cuMemset",
    "cuMemAllocAsync",
    "cuMemAllocFromPoolAsync",
    "cuMemPrefetch",
    "cuMemDiscard",
    "cuMemMapArrayAsync",
    "cuMemBatchDecompressAsync",
    "cuLaunch",
    "cuGraphLaunch",
    "cuGraphUpload",
    "cuGraphicsMap",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuStreamWait",
    "cuStreamWrite",
    "cuStreamBatchMemOp",
    "cuStreamAttachMemAsync",
    "cuCtxSynchronize",
    "cuCtxRecordEvent",
    "cuCtxWaitEvent",
    "cuSignalExternal",
    "cuWaitExternal",
];

/// Returns the enqueuing or waiting functions that this thread called outside of captures nested in the current one.
#[cfg(not(miri))]
fn enqueued_by<T>(operation: impl FnOnce() -> T) -> (T, Vec<&'static str>) {
    use std::sync::{Arc, Mutex};

    let (calls, depth, thread) = (
        Arc::new(Mutex::new(Vec::new())),
        Mutex::new(0),
        std::thread::current().id(),
    );
    let seen = Arc::clone(&calls);
    let observer = curium_driver::observe_calls(move |call: &curium_driver::Call<'_>| {
        let (name, mut depth) = (
            call.function.name(),
            depth.lock().expect("nothing panics here"),
        );
        if std::thread::current().id() != thread {
            return;
        }
        *depth += i32::from(name.starts_with("cuStreamBeginCapture"))
            - i32::from(name == "cuStreamEndCapture");
        if *depth == 0 && ENQUEUING.iter().any(|begin| name.starts_with(begin)) {
            seen.lock().expect("nothing panics here").push(name);
        }
    });
    let value = operation();
    drop(observer);
    let calls = calls.lock().expect("nothing panics here").clone();
    (value, calls)
}

/// No operation on a stream outside the capture enqueues work, and an error that names an alternative names an existing
/// function.
#[test]
#[cfg(not(miri))]
fn no_operation_enqueues_work_that_the_graph_would_miss() {
    use std::collections::BTreeSet;

    use crate::operations::{self, Fixture};

    let names: BTreeSet<&str> = operations::all()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    on_driver(|test| {
        let (mut refused, mut named, mut wrong) = (0, 0, Vec::new());
        for (name, operation) in operations::all() {
            // Parts of an operation that is checked before it binds its arguments.
            if name.starts_with("Accesses::") || name.contains("::bind") {
                continue;
            }
            // It begins with the work of another process, which must not fail.
            if name.starts_with("MemoryPool::import") || name.starts_with("PoolMemory::") {
                continue;
            }
            let mut fixture = Fixture::new(test);
            let context = fixture.context.clone();
            let graph = Graph::capture(&context, |_| {
                let (made, enqueued) = enqueued_by(|| operation(&mut fixture));
                if !enqueued.is_empty() {
                    wrong.push(format!("{name} calls {enqueued:?}"));
                }
                let Err(error) = made else {
                    return Ok::<_, Error>(());
                };
                let text = error.to_string();
                if !text.contains("this thread is capturing a graph") {
                    wrong.push(format!("{name} is refused otherwise: {text}"));
                }
                refused += 1;
                let own = name.rsplit("::").next().unwrap_or(name);
                if text.contains(&format!("`{own}_on(")) {
                    named += 1;
                    assert!(
                        names.contains(format!("{name}_on").as_str()),
                        "{name} has no counterpart: {text}"
                    );
                }
                Ok(())
            });
            assert!(
                graph.is_ok_and(|graph| graph.nodes().is_ok_and(|nodes| nodes.is_empty())),
                "{name}"
            );
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(
            refused > 120 && named >= 15,
            "{refused} were refused, and {named} have counterparts"
        );
    });
}

#[test]
fn copies_to_memory_of_the_host_name_memory_that_a_graph_can_write() {
    use curium_memory::{MappedBuffer, PinnedBuffer, PinnedFlags, copy};

    on_driver(|test| {
        let (context, stream) = (test.context(), test.stream());
        let mut x = DeviceBuffer::from_slice(&stream, &[3_u32; 16]).expect("memory suffices");
        let mut mapped = MappedBuffer::<u32>::zeroed(&stream, 16).expect("memory suffices");
        let mut pinned = Some(
            PinnedBuffer::from_slice(&context, &[5; 16], PinnedFlags::empty())
                .expect("memory suffices"),
        );
        let read = "copy to a `MappedBuffer` with `copy_from_device_on(scope, …)`, and read it with `host_view`";
        let graph = Graph::capture(&context, |scope| {
            assert_refused(x.to_vec(), read);
            assert_refused(x.to_vec_on(scope), read);
            assert_refused(x.copy_to_slice_on(scope, &mut [0; 16]), read);
            let source = pinned.take().expect("it is returned");
            let (source, error) = copy::upload(scope, source, &mut x)
                .expect_err("nothing keeps the memory")
                .into_parts();
            assert!(
                error.to_string().contains("`copy_from_slice_on(scope, …)`"),
                "{error}"
            );
            assert!(
                error
                    .to_string()
                    .contains("write it with `host_view_mut` between launches"),
                "{error}"
            );
            let (_, error) = copy::download(scope, &x, source)
                .expect_err("nothing keeps the memory")
                .into_parts();
            assert!(error.to_string().contains(read), "{error}");
            x.as_slice_mut().copy_from_device_on(scope, &mapped)
        });
        let mut executable = graph
            .and_then(|graph| graph.instantiate())
            .expect("the copy is captured");
        for value in [4, 6] {
            mapped
                .host_view_mut()
                .expect("nothing uses the memory")
                .fill(value);
            executable.launch(&stream).expect("it can be launched");
            assert_eq!(x.to_vec().expect("the buffer can be read"), [value; 16]);
        }
    });
}
