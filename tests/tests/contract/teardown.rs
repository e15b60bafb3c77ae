//! Deallocation on failure: memory is returned to the driver after a successful wait, or it is leaked, counted and
//! reported. [`on_driver`] asserts that its test leaks nothing.

mod kinds;

use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use curium_driver::{Driver, Error, Function, Graph, Stream, call, set_drop_observer};
use curium_memory::{
    Arena, CachingOptions, CachingResource, DeviceBuffer, Managed, Pinned, Resource, SyncAlloc,
};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, on_driver, uses_cuda};

const SEGMENT: u64 = 32 << 20;
const CODE: CUresult = CUresult::CUDA_ERROR_SYSTEM_NOT_READY;

/// Runs a test that leaks deliberately, and returns the reports of drops on its thread.
fn leaking(test: impl FnOnce(&Driver, &Simulator)) -> Vec<String> {
    static TURN: Mutex<()> = Mutex::new(());
    if uses_cuda() {
        return Vec::new();
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let simulator = Simulator::new(Config::new()).expect("a simulator can be created");
    let driver = simulator
        .driver::<Driver>()
        .expect("the simulator initializes");
    let (reports, this) = (Arc::new(Mutex::new(Vec::new())), thread::current().id());
    let sink = Arc::clone(&reports);
    set_drop_observer(Some(Arc::new(move |error: &Error| {
        // Other tests drop handles on their own threads.
        if thread::current().id() == this {
            sink.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(error.to_string());
        }
    })));
    test(&driver, &simulator);
    set_drop_observer(None);
    std::mem::take(&mut *reports.lock().unwrap_or_else(PoisonError::into_inner))
}

fn stream(driver: &Driver) -> Stream {
    driver
        .device(0)
        .and_then(|device| device.primary_context()?.stream())
        .expect("a stream can be created")
}

fn caching(stream: &Stream) -> CachingResource {
    let options = CachingOptions::new().with_cache(true);
    CachingResource::with_options(stream.context(), &options).expect("a resource can be created")
}

/// Runs `test` while another thread captures in the same context; the capture must stay valid.
fn during_a_capture(test: &TestDriver, run: impl FnOnce()) {
    let context = test.context();
    let (begun, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let capture = scope.spawn(move || {
            Graph::capture(&context, |_| {
                begun.send(()).expect("the test waits");
                let _ = may_end.recv();
                Ok::<(), Error>(())
            })
        });
        has_begun.recv().expect("the capture begins");
        run();
        drop(end);
        capture
            .join()
            .expect("the thread does not panic")
            .expect("the capture is still valid");
    });
}

#[test]
fn cache_dropped_while_another_thread_captures_waits_for_its_streams_and_unmaps() {
    on_driver(|test| {
        let stream = test.stream();
        let resource = caching(&stream);
        let gate = Gate::on(&stream);
        let mut buffer =
            DeviceBuffer::<u8, _>::uninit_in(&stream, 1 << 20, &resource).expect("memory suffices");
        buffer
            .as_slice_mut()
            .fill(7)
            .expect("the buffer can be filled");
        drop(buffer);
        let unmapped = || {
            test.simulator()
                .map_or(0, |simulator| simulator.calls(Function::cuMemUnmap))
        };
        during_a_capture(test, || {
            thread::scope(|scope| {
                let teardown = scope.spawn(move || drop(resource));
                thread::sleep(Duration::from_millis(50));
                assert_eq!(
                    (teardown.is_finished(), unmapped()),
                    (false, 0),
                    "the fill has not run"
                );
                gate.open();
                teardown.join().expect("teardown does not panic");
            });
        });
        assert_eq!(
            unmapped(),
            u64::from(test.simulator().is_some()),
            "the segment is not leaked"
        );
    });
}

#[test]
fn cache_whose_wait_fails_once_waits_again() {
    let reports = leaking(|driver, simulator| {
        let stream = stream(driver);
        let resource = caching(&stream);
        let gate = Gate::on(&stream);
        drop(
            DeviceBuffer::<u8, _>::zeroed_in(&stream, 1 << 20, &resource).expect("memory suffices"),
        );
        for function in [
            Function::cuStreamSynchronize,
            Function::cuCtxSynchronize,
            Function::cuCtxSynchronize_v2,
        ] {
            simulator.inject(Fault::on(function).returns(CODE));
        }
        thread::scope(|scope| {
            let opening = scope.spawn(|| {
                thread::sleep(Duration::from_millis(50));
                let unmapped = simulator.calls(Function::cuMemUnmap);
                gate.open();
                unmapped
            });
            drop(resource);
            assert_eq!(
                opening.join().expect("the thread does not panic"),
                0,
                "the memory was unmapped while in use"
            );
        });
        assert_eq!(
            (
                simulator.calls(Function::cuMemUnmap),
                driver.leaked_memory().bytes
            ),
            (1, 0)
        );
    });
    assert!(reports.is_empty(), "{reports:?}");
}

#[test]
fn cache_that_cannot_wait_leaks_its_segment_and_reports_it() {
    let reports = leaking(|driver, simulator| {
        let stream = stream(driver);
        let resource = caching(&stream);
        let gate = Gate::on(&stream);
        drop(
            DeviceBuffer::<u8, _>::zeroed_in(&stream, 1 << 20, &resource).expect("memory suffices"),
        );
        for function in [
            Function::cuStreamSynchronize,
            Function::cuCtxSynchronize,
            Function::cuCtxSynchronize_v2,
        ] {
            simulator.inject(Fault::on(function).always().returns(CODE));
        }
        drop(resource);
        assert_eq!(
            simulator.calls(Function::cuMemUnmap),
            0,
            "the memory is in use"
        );
        let leaked = driver.leaked_memory();
        assert_eq!((leaked.allocations, leaked.bytes), (1, SEGMENT));
        simulator.clear_faults();
        gate.open();
    });
    if !uses_cuda() {
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(
            reports[0].contains("33554432 bytes")
                && reports[0].contains("CUDA_ERROR_SYSTEM_NOT_READY"),
            "{reports:?}"
        );
    }
}

#[test]
fn segment_with_a_forgotten_buffer_is_leaked_and_the_others_are_unmapped() {
    let reports = leaking(|driver, simulator| {
        let stream = stream(driver);
        let resource = caching(&stream);
        let gate = Gate::on(&stream);
        let mut forgotten = DeviceBuffer::<u8, _>::zeroed_in(&stream, 20 << 20, &resource)
            .expect("memory suffices");
        forgotten
            .as_slice_mut()
            .fill(1)
            .expect("the buffer can be filled");
        drop(
            DeviceBuffer::<u8, _>::uninit_in(&stream, 40 << 20, &resource)
                .expect("memory suffices"),
        );
        assert_eq!(resource.segments().len(), 2);
        std::mem::forget(forgotten);
        gate.open();
        drop(resource);
        assert_eq!(simulator.calls(Function::cuMemUnmap), 1);
        assert_eq!(driver.leaked_memory().allocations, 1);
    });
    if !uses_cuda() {
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(
            reports[0].starts_with("CachingResource::drop: "),
            "{reports:?}"
        );
    }
}

#[test]
fn piece_of_another_resource_with_a_forgotten_buffer_stays_with_that_resource() {
    leaking(|driver, simulator| {
        let stream = stream(driver);
        let options = CachingOptions::new().with_cache(true);
        let resource =
            CachingResource::with_upstream(stream.context(), &options, Arc::new(caching(&stream)));
        let resource = resource.expect("a resource can be created");
        std::mem::forget(
            DeviceBuffer::<u8, _>::zeroed_in(&stream, 16, &resource).expect("memory suffices"),
        );
        drop(resource);
        assert_eq!(
            simulator.calls(Function::cuMemUnmap),
            0,
            "the memory is in use"
        );
        assert!(driver.leaked_memory().bytes >= SEGMENT);
    });
}

#[test]
fn arena_with_a_forgotten_buffer_leaks_its_memory_and_reports_it() {
    let reports = leaking(|driver, simulator| {
        let stream = stream(driver);
        let arena = Arena::new(stream.context()).expect("memory can be mapped");
        std::mem::forget(
            DeviceBuffer::<u8, _>::zeroed_in(&stream, 16, &arena).expect("memory suffices"),
        );
        drop(arena);
        assert_eq!(
            simulator.calls(Function::cuMemUnmap),
            0,
            "the memory is in use"
        );
        assert_eq!(driver.leaked_memory().bytes, 2 << 20);
    });
    if !uses_cuda() {
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(reports[0].starts_with("Arena::drop: "), "{reports:?}");
    }
}

#[test]
fn arena_dropped_while_another_thread_captures_unmaps() {
    on_driver(|test| {
        let stream = test.stream();
        let arena = Arena::new(&test.context()).expect("memory can be mapped");
        drop(DeviceBuffer::<u8, _>::zeroed_in(&stream, 16, &arena).expect("memory suffices"));
        during_a_capture(test, || drop(arena));
    });
}

#[test]
fn memory_allocated_in_a_capture_that_is_invalidated_is_not_leaked() {
    on_driver(|test| {
        let context = test.context();
        let captured = Graph::capture(&context, |scope| {
            let [dropped, closed] = [(); 2].map(|()| DeviceBuffer::<u8>::uninit(scope, 1 << 16));
            let (dropped, closed) = (dropped?, closed?);
            // SAFETY: the function has no parameters, and the context is current.
            let waited = context.entered(|driver| unsafe { call!(driver, cuCtxSynchronize()) });
            assert_eq!(
                waited.expect_err("it invalidates the capture").code(),
                Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
            );
            drop(dropped);
            closed.close().expect("nothing is left to be freed");
            Ok::<_, Error>(())
        });
        let error = captured.map(drop).expect_err("the capture is invalid");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
            "{error}"
        );
    });
}

#[test]
fn memory_that_a_capture_cannot_free_at_once_is_freed_at_its_end() {
    let reports = leaking(|driver, simulator| {
        let stream = stream(driver);
        let captured = Graph::capture(stream.context(), |scope| {
            let buffer = DeviceBuffer::<u8>::zeroed(scope, 1 << 16)?;
            simulator.inject(Fault::on(Function::cuMemFreeAsync).returns(CODE));
            drop(buffer);
            Ok::<_, Error>(())
        });
        let graph = captured.expect("the end of the capture frees the memory");
        assert_eq!(simulator.calls(Function::cuMemFreeAsync), 2);
        let mut executable = graph.instantiate().expect("the graph is correct");
        for _ in 0..2 {
            executable
                .launch(&stream)
                .expect("the memory of the previous launch was freed");
        }
        stream.synchronize().expect("the graph runs");
        assert_eq!(driver.leaked_memory().bytes, 0);
    });
    assert!(reports.is_empty(), "{reports:?}");
}

#[test]
fn block_of_an_arena_that_cannot_be_waited_for_is_not_reused() {
    leaking(|driver, simulator| {
        let (stream, other) = (stream(driver), stream(driver));
        let arena = Arena::new(stream.context()).expect("memory can be mapped");
        let gate = Gate::on(&stream);
        let buffer =
            DeviceBuffer::<u8, _>::zeroed_in(&stream, 1 << 20, &arena).expect("memory suffices");
        let address = buffer.as_pointer();
        simulator.inject(
            Fault::on(Function::cuStreamSynchronize)
                .always()
                .returns(CODE),
        );
        drop(buffer);
        simulator.clear_faults();
        assert_eq!(
            (
                driver.leaked_memory().allocations,
                driver.leaked_memory().bytes
            ),
            (1, 1 << 20)
        );
        let next =
            DeviceBuffer::<u8, _>::uninit_in(&other, 1 << 20, &arena).expect("memory suffices");
        assert_ne!(next.as_pointer(), address, "the memory is in use");
        gate.open();
    });
}

#[test]
fn memory_that_cannot_be_waited_for_is_not_freed() {
    let sources: [Arc<dyn Resource>; 3] =
        [Arc::new(SyncAlloc), Arc::new(Managed), Arc::new(Pinned)];
    for source in sources {
        let reports = leaking(|driver, simulator| {
            let stream = stream(driver);
            let gate = Gate::on(&stream);
            let buffer =
                DeviceBuffer::<u8, _>::zeroed_in(&stream, 4096, source).expect("memory suffices");
            simulator.inject(
                Fault::on(Function::cuStreamSynchronize)
                    .always()
                    .returns(CODE),
            );
            drop(buffer);
            let freed = [Function::cuMemFree_v2, Function::cuMemFreeHost]
                .map(|function| simulator.calls(function));
            assert_eq!(freed, [0, 0], "the memory is in use");
            assert_eq!(
                (
                    driver.leaked_memory().allocations,
                    driver.leaked_memory().bytes
                ),
                (1, 4096)
            );
            simulator.clear_faults();
            gate.open();
        });
        assert_eq!(reports.len(), usize::from(!uses_cuda()), "{reports:?}");
    }
}

#[test]
#[cfg(not(miri))]
fn borrowed_memory_that_cannot_be_waited_for_aborts_the_process_with_its_reason() {
    const NAME: &str =
        "teardown::borrowed_memory_that_cannot_be_waited_for_aborts_the_process_with_its_reason";
    const CHILD: &str = "CURIUM_TEST_ABORT";
    if std::env::var_os(CHILD).is_some() {
        let simulator = Simulator::new(Config::new()).expect("a simulator can be created");
        let driver = simulator
            .driver::<Driver>()
            .expect("the simulator initializes");
        let buffer = DeviceBuffer::<u8>::zeroed(&stream(&driver), 16).expect("memory suffices");
        simulator.inject(
            Fault::on(Function::cuStreamSynchronize)
                .always()
                .returns(CODE),
        );
        let result = buffer.copy_to_slice(&mut [0; 16]);
        unreachable!("the slice is in use: {result:?}");
    }
    if uses_cuda() {
        return;
    }
    let mut process = curium_tests::own_program();
    process
        .args([NAME, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("CURIUM_ABORT_AFTER", "0");
    let output = process
        .output()
        .expect("the test binary can be started again");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "the process aborts: {text}");
    assert!(
        output.status.code().is_none() || cfg!(windows),
        "a signal ends the process: {text}"
    );
    assert!(
        text.contains("the process aborts") && text.contains("CUDA_ERROR_SYSTEM_NOT_READY"),
        "{text}"
    );
}
