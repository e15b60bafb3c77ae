//! Operations within the closure of a capture: a thread may enqueue work on the scope or its forks,
//! and nothing that the graph would miss.

mod twins;

use curium_driver::{Error, Event, EventFlags, Graph, Kernel, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver, resume_panic};

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

fn double(test: &TestDriver) -> TestResult<Double> {
    let library = Library::from_ptx(test.driver(), DOUBLE)?;
    Ok(library.kernel("double")?)
}

fn launch(kernel: &Double, stream: &Stream, buffer: &mut DeviceBuffer<f32>) -> Result<(), Error> {
    // SAFETY: the kernel writes only elements below the length argument, which is the length of the
    // buffer.
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

/// A fill that the graph would miss is refused and the one that is captured gives two.
#[driver_test]
fn uncaptured_fill_is_refused(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let double = double(test)?;
    let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32; LEN])?;
    let refused = Graph::capture(&context, |scope| {
        x.fill(1.0)?;
        launch(&double, scope, &mut x)
    });
    // A regression test: the operation ran immediately instead, and three launches gave 8.
    assert_refused(refused, "use `.on_mut(scope)`");
    let graph = Graph::capture(&context, |scope| {
        x.on_mut(scope).fill(1.0)?;
        launch(&double, scope, &mut x)
    })?;
    assert_eq!(graph.nodes()?.len(), 2);
    let mut executable = graph.instantiate()?;
    for _ in 0..3 {
        executable.launch(&stream)?;
    }
    assert_eq!(x.to_vec()?, [2.0; LEN]);
    Ok(())
}

/// Work of the driver on other streams is refused in the closure and on other threads it is not.
#[driver_test]
fn closure_refuses_work_on_other_streams(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let double = double(test)?;
    let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32; LEN])?;
    let event = Event::new(&context, EventFlags::empty())?;
    event.record(&stream)?;
    let mut empty = Graph::new(&context).and_then(|graph| graph.instantiate())?;
    let scope_or_fork = "enqueue it on the capture scope or one of its forks";
    let graph = Graph::capture(&context, |scope| {
        assert_refused(launch(&double, &stream, &mut x), scope_or_fork);
        assert_refused(event.record(&stream), scope_or_fork);
        assert_refused(stream.wait_event(&event), scope_or_fork);
        assert_refused(x.on_mut(&stream).fill(3.0), "use `.on_mut(scope)`");
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
            resume_panic(other.join()).expect("other threads are not restricted");
        });
        launch(&double, &scope.fork()?, &mut x)
    });
    assert_eq!(graph?.nodes()?.len(), 1);
    assert_eq!(x.to_vec()?, [2.0; LEN]);
    Ok(())
}

/// Operands without elements and advice are refused as well.
#[test]
fn empty_operands_are_refused() -> TestResult {
    use curium_memory::copy::CopyBatch;
    use curium_memory::{
        DecompressBatch, Extent, HostPitchedSlice, HostPitchedSliceMut, MemoryAdvice,
        MemoryLocation, Pitch, UnifiedBuffer,
    };

    const NOTHING: Extent = Extent::new_2d(0, 4);
    const TIGHT: Pitch = Pitch::tight::<u32>(NOTHING);
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let mut x = DeviceBuffer::<u32>::from_slice(&stream, &[1; LEN])?;
        let source = DeviceBuffer::<u32>::from_slice(&stream, &[1; LEN])?;
        let device = MemoryLocation::from(&test.device());
        let managed = UnifiedBuffer::from_slice(&stream, &[1_u32; LEN])?;
        let graph = Graph::capture(&test.context(), |_| {
            let is_missed = "missing from the graph";
            // A regression test: all of these returned success.
            assert_refused(x.slice_mut(..0)?.on_mut(&stream).fill(1), is_missed);
            assert_refused(
                x.slice_mut(..0)?
                    .on_mut(&stream)
                    .copy_from_device(&source.slice(..0)?),
                is_missed,
            );
            assert_refused(
                x.slice_mut(..0)?.on_mut(&stream).copy_from_slice(&[]),
                is_missed,
            );
            assert_refused(x.slice(..0)?.on(&stream).copy_to_slice(&mut []), is_missed);
            assert_refused(
                x.slice_mut(..0)?
                    .pitched_mut(NOTHING, TIGHT)?
                    .on_mut(&stream)
                    .fill(1),
                is_missed,
            );
            let from = source.slice(..0)?;
            let from = from.pitched(NOTHING, TIGHT)?;
            assert_refused(
                x.slice_mut(..0)?
                    .pitched_mut(NOTHING, TIGHT)?
                    .on_mut(&stream)
                    .copy_from(&from),
                is_missed,
            );
            let host = HostPitchedSlice::new(&[], NOTHING, TIGHT)?;
            assert_refused(
                x.slice_mut(..0)?
                    .pitched_mut(NOTHING, TIGHT)?
                    .on_mut(&stream)
                    .copy_from_host(&host),
                is_missed,
            );
            let mut host: [u32; 0] = [];
            let mut host = HostPitchedSliceMut::new(&mut host, NOTHING, TIGHT)?;
            assert_refused(from.on(&stream).copy_to_host(&mut host), is_missed);
            assert_refused(
                x.slice_mut(..0)?
                    .pitched_mut(NOTHING, TIGHT)?
                    .on_mut(&stream)
                    .copy_from_slice(&[]),
                is_missed,
            );
            assert_refused(from.on(&stream).copy_to_slice(&mut []), is_missed);
            assert_refused(CopyBatch::new().enqueue(&stream), is_missed);
            assert_refused(DecompressBatch::new().enqueue(&stream), is_missed);
            assert_refused(managed.prefetch(&stream, 0..0, device), is_missed);
            assert_refused(managed.advise(.., MemoryAdvice::ReadMostly), is_missed);
            Ok::<_, Error>(())
        });
        assert!(graph?.nodes()?.is_empty());
        Ok(())
    })?;
    Ok(())
}

/// A closure within a closure enqueues on its own scope only.
#[driver_test]
fn nested_closure_enqueues_on_its_own_scope(test: &TestDriver) -> TestResult {
    let context = test.context();
    let double = double(test)?;
    let mut x = DeviceBuffer::from_slice(&test.stream(), &[1.0_f32; LEN])?;
    let outer = Graph::capture(&context, |outer| {
        let inner = Graph::capture(&context, |inner| {
            assert_refused(launch(&double, outer, &mut x), "on the capture scope");
            launch(&double, inner, &mut x)
        });
        assert_eq!(inner?.nodes()?.len(), 1);
        launch(&double, outer, &mut x)?;
        launch(&double, outer, &mut x)
    });
    assert_eq!(outer?.nodes()?.len(), 2);
    Ok(())
}

/// A thread is unrestricted when the closure has failed or panicked.
#[driver_test]
fn thread_is_unrestricted_after_a_failed_closure(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let double = double(test)?;
    let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32; LEN])?;
    Graph::capture(&context, |_| {
        Err(Error::argument("work", "fails as it should"))
    })
    .expect_err("the work fails");
    launch(&double, &stream, &mut x)?;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        Graph::capture(&context, |_| -> Result<(), Error> {
            panic!("part of the test")
        })
    }));
    assert!(panicked.is_err(), "the panic propagates");
    launch(&double, &stream, &mut x)?;
    assert_eq!(x.to_vec()?, [4.0; LEN]);
    Ok(())
}

/// Dropping and closing within the closure is no work of the graph and works.
#[driver_test]
fn closure_may_drop_and_close_objects(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let x = zeroes(&stream)?;
    let y = zeroes(&stream)?;
    let graph = Graph::capture(&context, |_| {
        drop(x);
        y.close().map_err(|returned| returned.error)
    });
    assert!(graph?.nodes()?.is_empty());
    Ok(())
}

fn zeroes(stream: &Stream) -> TestResult<DeviceBuffer<f32>> {
    Ok(DeviceBuffer::zeroed(stream, LEN)?)
}

/// A closure may return any error that an error of this crate becomes.
#[test]
fn closure_has_any_error_type() -> TestResult {
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
    on_driver(|test| -> TestResult {
        let context = test.context();
        let stream = test.stream();
        let double = double(test)?;
        let mut x = DeviceBuffer::from_slice(&stream, &[1.0_f32; LEN])?;
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
        assert_refused(Err::<(), _>(error), "on the capture scope");
        let boxed = Graph::capture(&context, |_| -> Result<(), Box<dyn std::error::Error>> {
            Err("text")?
        });
        assert_eq!(boxed.expect_err("the work fails").to_string(), "text");
        let mut graph = Graph::new(&context)?;
        let failed = graph
            .capture_into(&[], |_| Err(Own::Other))
            .expect_err("the work fails");
        assert!(matches!(failed, Own::Other));
        let mut replays = curium_driver::GraphCache::new();
        let ran = replays
            .run(&stream, (), (), |_| Err(Own::Other))
            .expect_err("the work fails");
        assert!(matches!(ran, Own::Other));
        Ok(())
    })?;
    Ok(())
}

/// Functions that enqueue work or wait on the host, by prefix. A deallocation may free in stream
/// order and wait for a stream.
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

/// Returns the enqueuing or waiting functions that this thread called outside of captures nested in
/// the current one.
#[cfg(not(miri))]
fn enqueued_by<T>(operation: impl FnOnce() -> T) -> (T, Vec<&'static str>) {
    use parking_lot::Mutex;
    use std::sync::Arc;

    let calls = Arc::new(Mutex::new(Vec::new()));
    let depth = Mutex::new(0);
    let thread = std::thread::current().id();
    let seen = Arc::clone(&calls);
    let observer = curium_driver::observe_calls(move |call: &curium_driver::Call<'_>| {
        let name = call.function.name();
        let mut depth = depth.lock();
        if std::thread::current().id() != thread {
            return;
        }
        *depth += i32::from(name.starts_with("cuStreamBeginCapture"))
            - i32::from(name == "cuStreamEndCapture");
        if *depth == 0 && ENQUEUING.iter().any(|begin| name.starts_with(begin)) {
            seen.lock().push(name);
        }
    });
    let value = operation();
    drop(observer);
    let calls = calls.lock().clone();
    (value, calls)
}

/// No operation enqueues work that the graph would miss.
///
/// No operation on a stream outside the capture enqueues work, and the errors of those on a buffer
/// name the alternative.
#[test]
#[cfg(not(miri))]
fn graph_holds_every_operation() {
    use crate::operations::{self, Fixture};

    on_driver(|test| {
        let mut refused = 0;
        let mut named = 0;
        let mut wrong = Vec::new();
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
                named += usize::from(
                    text.contains("use `.on_mut(scope)`") || text.contains("use `.on(scope)`"),
                );
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

/// Copies to memory of the host name memory that a graph can write.
#[test]
fn error_suggests_other_memory() -> TestResult {
    use curium_memory::{MappedBuffer, PinnedBuffer, PinnedFlags, copy};

    on_driver(|test| -> TestResult {
        let context = test.context();
        let stream = test.stream();
        let mut x = DeviceBuffer::from_slice(&stream, &[3_u32; 16])?;
        let mut mapped = MappedBuffer::<u32>::zeroed(&stream, 16)?;
        let mut pinned = Some(PinnedBuffer::from_slice(
            &context,
            &[5; 16],
            PinnedFlags::empty(),
        )?);
        let read = "copy to a `MappedBuffer` with `.on_mut(scope).copy_from_device(…)`, and read it with `host_view`";
        let graph = Graph::capture(&context, |scope| {
            assert_refused(x.to_vec(), read);
            assert_refused(x.on(scope).to_vec(), read);
            assert_refused(x.on(scope).copy_to_slice(&mut [0; 16]), read);
            let source = pinned.take().expect("the buffer was not returned");
            let (source, error) = copy::upload(scope, source, &mut x)
                .expect_err("nothing keeps the memory")
                .into_parts();
            assert!(
                error
                    .to_string()
                    .contains("`.on_mut(scope).copy_from_slice(…)`"),
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
            x.on_mut(scope).copy_from_device(&mapped)
        });
        let mut executable = graph.and_then(|graph| graph.instantiate())?;
        for value in [4, 6] {
            mapped.host_view_mut()?.fill(value);
            executable.launch(&stream)?;
            assert_eq!(x.to_vec()?, [value; 16]);
        }
        Ok(())
    })?;
    Ok(())
}
