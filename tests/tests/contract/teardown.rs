//! Deallocation on failure: memory is returned to the driver after a successful wait, or it is
//! leaked, counted and reported. [`on_driver`] asserts that its test leaks nothing.

mod kinds;

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use curium_driver::{Driver, Error, Function, Graph, Stream, call, set_drop_observer};
use curium_memory::{
    Arena, CachingOptions, CachingResource, DeviceBuffer, Managed, Pinned, Resource, SyncAlloc,
};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, resume_panic, skip, uses_cuda};
use parking_lot::Mutex;

/// The size of a segment of a cache in bytes.
const SEGMENT: u64 = 32 << 20;
/// Memory is mapped in parts of this size.
const PART: u64 = 4 << 20;
const PARTS: u64 = SEGMENT / PART;
/// The code of injected failures, which nothing else returns.
const CODE: CUresult = CUresult::CUDA_ERROR_SYSTEM_NOT_READY;
/// The functions by which a cache waits for its streams.
const WAITS: [Function; 3] = [
    Function::cuStreamSynchronize,
    Function::cuCtxSynchronize,
    Function::cuCtxSynchronize_v2,
];

/// Runs a test that leaks deliberately, and returns the reports of drops on its thread.
fn leaking(test: impl FnOnce(&Driver, &Simulator) -> TestResult) -> TestResult<Vec<String>> {
    static TURN: Mutex<()> = Mutex::new(());
    if uses_cuda() {
        return Ok(Vec::new());
    }
    let _turn = TURN.lock();
    let simulator = Simulator::new(Config::new())?;
    let driver = simulator.driver::<Driver>()?;
    let reports = Arc::new(Mutex::new(Vec::new()));
    let this = thread::current().id();
    let sink = Arc::clone(&reports);
    set_drop_observer(Some(Arc::new(move |error: &Error| {
        // Other tests drop handles on their own threads.
        if thread::current().id() == this {
            sink.lock().push(error.to_string());
        }
    })));
    let outcome = test(&driver, &simulator);
    set_drop_observer(None);
    outcome?;
    let mut reports = reports.lock();
    Ok(std::mem::take(&mut *reports))
}

fn stream(driver: &Driver) -> TestResult<Stream> {
    Ok(driver.device(0)?.primary_context()?.stream()?)
}

fn caching(stream: &Stream) -> TestResult<CachingResource> {
    let options = CachingOptions::new().with_cache(true);
    Ok(CachingResource::with_options(stream.context(), &options)?)
}

/// Returns the number of segments that were unmapped, 0 without a simulator.
fn unmapped(test: &TestDriver) -> u64 {
    test.simulator()
        .map_or(0, |simulator| simulator.calls(Function::cuMemUnmap))
}

/// Runs `test` while another thread captures in the same context; the capture must stay valid.
fn during_a_capture(test: &TestDriver, run: impl FnOnce()) -> TestResult {
    let context = test.context();
    let (begun, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    thread::scope(|scope| -> TestResult {
        let capture = scope.spawn(move || {
            Graph::capture(&context, |_| {
                begun.send(()).expect("the test waits");
                let _ = may_end.recv();
                Ok::<(), Error>(())
            })
        });
        has_begun.recv()?;
        run();
        drop(end);
        // The capture is still valid.
        resume_panic(capture.join())?;
        Ok(())
    })
}

/// A cache dropped while another thread captures waits for its streams and unmaps.
#[driver_test]
fn dropped_cache_unmaps_during_other_captures(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let resource = caching(&stream)?;
    let gate = Gate::on(&stream);
    let mut buffer = DeviceBuffer::<u8, _>::uninit_in(&stream, 1 << 20, &resource)?;
    buffer.fill(7)?;
    drop(buffer);
    during_a_capture(test, || {
        thread::scope(|scope| {
            let teardown = scope.spawn(move || drop(resource));
            thread::sleep(Duration::from_millis(50));
            assert!(!teardown.is_finished(), "the fill has not run");
            assert_eq!(unmapped(test), 0, "the fill has not run");
            gate.open();
            resume_panic(teardown.join());
        });
    })?;
    let parts = if test.simulator().is_some() { PARTS } else { 0 };
    assert_eq!(unmapped(test), parts, "the segment is not leaked");
    Ok(())
}

#[test]
fn cache_waits_again() -> TestResult {
    let reports = leaking(|driver, simulator| -> TestResult {
        let stream = stream(driver)?;
        let resource = caching(&stream)?;
        let gate = Gate::on(&stream);
        drop(DeviceBuffer::<u8, _>::zeroed_in(
            &stream,
            1 << 20,
            &resource,
        )?);
        for function in WAITS {
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
                resume_panic(opening.join()),
                0,
                "the memory was unmapped while in use"
            );
        });
        assert_eq!(simulator.calls(Function::cuMemUnmap), PARTS);
        assert_eq!(driver.leaked_memory().bytes, 0);
        Ok(())
    })?;
    assert!(reports.is_empty(), "{reports:?}");
    Ok(())
}

/// A cache that cannot wait leaks its segment and reports it.
#[test]
fn cache_leaks_after_failed_wait() -> TestResult {
    let reports = leaking(|driver, simulator| -> TestResult {
        let stream = stream(driver)?;
        let resource = caching(&stream)?;
        let gate = Gate::on(&stream);
        drop(DeviceBuffer::<u8, _>::zeroed_in(
            &stream,
            1 << 20,
            &resource,
        )?);
        for function in WAITS {
            simulator.inject(Fault::on(function).always().returns(CODE));
        }
        drop(resource);
        assert_eq!(
            simulator.calls(Function::cuMemUnmap),
            PARTS - 1,
            "one part is in use"
        );
        let leaked = driver.leaked_memory();
        assert_eq!(leaked.allocations, 1);
        assert_eq!(leaked.bytes, PART);
        simulator.clear_faults();
        gate.open();
        Ok(())
    })?;
    if !uses_cuda() {
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(
            reports[0].contains("4194304 bytes")
                && reports[0].contains("CUDA_ERROR_SYSTEM_NOT_READY"),
            "{reports:?}"
        );
    }
    Ok(())
}

/// A segment with a forgotten buffer is leaked and the others are unmapped.
#[test]
fn only_forgotten_segments_leak() -> TestResult {
    let reports = leaking(|driver, simulator| -> TestResult {
        let stream = stream(driver)?;
        let resource = caching(&stream)?;
        let gate = Gate::on(&stream);
        let mut forgotten = DeviceBuffer::<u8, _>::zeroed_in(&stream, 20 << 20, &resource)?;
        forgotten.fill(1)?;
        drop(DeviceBuffer::<u8, _>::uninit_in(
            &stream,
            40 << 20,
            &resource,
        )?);
        let reserved: u64 = resource.segments().iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(reserved, 60 << 20, "free memory was extended");
        std::mem::forget(forgotten);
        gate.open();
        drop(resource);
        // Memory is mapped in parts of 4 MiB, five of which are in use.
        assert_eq!(simulator.calls(Function::cuMemUnmap), 10);
        assert_eq!(driver.leaked_memory().allocations, 1);
        Ok(())
    })?;
    if !uses_cuda() {
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(
            reports[0].starts_with("CachingResource::drop: "),
            "{reports:?}"
        );
    }
    Ok(())
}

/// A piece of another resource with a forgotten buffer stays with that resource.
#[test]
fn forgotten_buffer_stays() -> TestResult {
    leaking(|driver, simulator| -> TestResult {
        let stream = stream(driver)?;
        let options = CachingOptions::new().with_cache(true);
        let resource = CachingResource::with_upstream(
            stream.context(),
            &options,
            Arc::new(caching(&stream)?),
        )?;
        std::mem::forget(DeviceBuffer::<u8, _>::zeroed_in(&stream, 16, &resource)?);
        drop(resource);
        assert_eq!(
            simulator.calls(Function::cuMemUnmap),
            0,
            "the memory is in use"
        );
        assert!(driver.leaked_memory().bytes >= SEGMENT);
        Ok(())
    })?;
    Ok(())
}

/// An arena with a forgotten buffer leaks its memory and reports it.
#[test]
fn arena_leaks_forgotten_buffers() -> TestResult {
    let reports = leaking(|driver, simulator| -> TestResult {
        let stream = stream(driver)?;
        let arena = Arena::new(stream.context())?;
        std::mem::forget(DeviceBuffer::<u8, _>::zeroed_in(&stream, 16, &arena)?);
        drop(arena);
        assert_eq!(
            simulator.calls(Function::cuMemUnmap),
            0,
            "the memory is in use"
        );
        assert_eq!(driver.leaked_memory().bytes, 2 << 20);
        Ok(())
    })?;
    if !uses_cuda() {
        assert_eq!(reports.len(), 1, "{reports:?}");
        assert!(reports[0].starts_with("Arena::drop: "), "{reports:?}");
    }
    Ok(())
}

#[driver_test]
fn arena_dropped_while_another_thread_captures_unmaps(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let arena = Arena::new(&test.context())?;
    drop(DeviceBuffer::<u8, _>::zeroed_in(&stream, 16, &arena)?);
    during_a_capture(test, || drop(arena))
}

/// Memory allocated in a capture that is invalidated is not leaked.
#[driver_test]
fn invalidated_capture_leaks_no_memory(test: &TestDriver) {
    let context = test.context();
    let captured = Graph::capture(&context, |scope| {
        let dropped = DeviceBuffer::<u8>::uninit(scope, 1 << 16)?;
        let closed = DeviceBuffer::<u8>::uninit(scope, 1 << 16)?;
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
}

/// Memory that a capture cannot free at once is freed at its end.
#[test]
fn capture_frees_deferred_memory() -> TestResult {
    let reports = leaking(|driver, simulator| -> TestResult {
        let stream = stream(driver)?;
        let captured = Graph::capture(stream.context(), |scope| {
            let buffer = DeviceBuffer::<u8>::zeroed(scope, 1 << 16)?;
            simulator.inject(Fault::on(Function::cuMemFreeAsync).returns(CODE));
            drop(buffer);
            Ok::<_, Error>(())
        });
        let graph = captured?;
        assert_eq!(simulator.calls(Function::cuMemFreeAsync), 2);
        let mut executable = graph.instantiate()?;
        for _ in 0..2 {
            executable.launch(&stream)?;
        }
        stream.synchronize()?;
        assert_eq!(driver.leaked_memory().bytes, 0);
        Ok(())
    })?;
    assert!(reports.is_empty(), "{reports:?}");
    Ok(())
}

/// A block of an arena that cannot be waited for is not reused.
#[test]
fn failed_wait_blocks_reuse() -> TestResult {
    leaking(|driver, simulator| -> TestResult {
        let other = stream(driver)?;
        let stream = stream(driver)?;
        let arena = Arena::new(stream.context())?;
        let gate = Gate::on(&stream);
        let buffer = DeviceBuffer::<u8, _>::zeroed_in(&stream, 1 << 20, &arena)?;
        let address = buffer.as_pointer();
        simulator.inject(
            Fault::on(Function::cuStreamSynchronize)
                .always()
                .returns(CODE),
        );
        drop(buffer);
        simulator.clear_faults();
        let leaked = driver.leaked_memory();
        assert_eq!(leaked.allocations, 1);
        assert_eq!(leaked.bytes, 1 << 20);
        let next = DeviceBuffer::<u8, _>::uninit_in(&other, 1 << 20, &arena)?;
        assert_ne!(next.as_pointer(), address, "the memory is in use");
        gate.open();
        Ok(())
    })?;
    Ok(())
}

#[test]
fn unwaitable_memory_is_not_freed() -> TestResult {
    let sources: [Arc<dyn Resource>; 3] =
        [Arc::new(SyncAlloc), Arc::new(Managed), Arc::new(Pinned)];
    for source in sources {
        let reports = leaking(|driver, simulator| -> TestResult {
            let stream = stream(driver)?;
            let gate = Gate::on(&stream);
            let buffer = DeviceBuffer::<u8, _>::zeroed_in(&stream, 4096, source)?;
            simulator.inject(
                Fault::on(Function::cuStreamSynchronize)
                    .always()
                    .returns(CODE),
            );
            drop(buffer);
            let freed = [Function::cuMemFree_v2, Function::cuMemFreeHost]
                .map(|function| simulator.calls(function));
            assert_eq!(freed, [0, 0], "the memory is in use");
            let leaked = driver.leaked_memory();
            assert_eq!(leaked.allocations, 1);
            assert_eq!(leaked.bytes, 4096);
            simulator.clear_faults();
            gate.open();
            Ok(())
        })?;
        assert_eq!(reports.len(), usize::from(!uses_cuda()), "{reports:?}");
    }
    Ok(())
}

/// Borrowed memory that cannot be waited for aborts the process with its reason.
#[test]
#[cfg(not(miri))]
fn unwaitable_borrow_aborts() -> TestResult {
    const NAME: &str = "teardown::unwaitable_borrow_aborts";
    const CHILD: &str = "CURIUM_TEST_ABORT";
    if std::env::var_os(CHILD).is_some() {
        let simulator = Simulator::new(Config::new())?;
        let driver = simulator.driver::<Driver>()?;
        let buffer = DeviceBuffer::<u8>::zeroed(&stream(&driver)?, 16)?;
        simulator.inject(
            Fault::on(Function::cuStreamSynchronize)
                .always()
                .returns(CODE),
        );
        let result = buffer.copy_to_slice(&mut [0; 16]);
        unreachable!("the slice is in use: {result:?}");
    }
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let mut process = curium_tests::own_program();
    process
        .args([NAME, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("CURIUM_ABORT_AFTER", "0");
    let output = process.output()?;
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
    Ok(())
}
