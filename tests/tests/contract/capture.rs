//! Stream capture through the driver's functions: captured nodes, joined streams, and invalidated
//! captures.

mod calls;
mod rules;
mod shape;

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use curium_driver::AsRawStream as _;
use curium_driver::extend::{with_relaxed_capture_mode, with_relaxed_capture_mode_if_possible};
use curium_driver::{Driver, Event, EventFlags, LaunchConfig, Library, Result, Stream, call};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};
use curium_sys::{
    CUdeviceptr, CUgraph, CUgraphExec, CUresult, CUstreamCaptureMode,
    CUstreamCaptureMode_enum as Mode, CUstreamCaptureStatus,
};
use curium_tests::{TestDriver, TestResult, driver_test, kernels};

fn begin(stream: &Stream, mode: CUstreamCaptureMode) -> Result<()> {
    // SAFETY: the stream is live.
    unsafe {
        call!(
            stream.driver(),
            cuStreamBeginCapture_v2(stream.as_raw(), mode)
        )
    }
}

/// Ends a capture; the graph is null if the driver returned none.
fn end(stream: &Stream) -> (CUgraph, Result<()>) {
    let mut graph = ptr::null_mut();
    // SAFETY: the stream is live, and the address is valid for writes of a graph handle.
    let result = unsafe {
        call!(
            stream.driver(),
            cuStreamEndCapture(stream.as_raw(), &raw mut graph)
        )
    };
    (graph, result)
}

/// Returns the graph of the work that `work` enqueues on a stream.
fn captured(stream: &Stream, work: impl FnOnce() -> TestResult) -> TestResult<CUgraph> {
    begin(stream, Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    work()?;
    let (graph, result) = end(stream);
    result?;
    Ok(graph)
}

fn instantiated(stream: &Stream, graph: CUgraph) -> TestResult<CUgraphExec> {
    let mut executable = ptr::null_mut();
    let instantiate = || {
        // SAFETY: the graph is live, the address is valid for writes of an executable graph handle,
        // and the context is current.
        unsafe {
            call!(
                stream.driver(),
                cuGraphInstantiateWithFlags(&raw mut executable, graph, 0)
            )
        }
    };
    let result = stream.context().scoped(instantiate)?;
    result?;
    Ok(executable)
}

/// Launches a graph `times` times, waits, and destroys it.
fn run(stream: &Stream, graph: CUgraph, times: usize) -> TestResult {
    let executable = instantiated(stream, graph)?;
    destroy(stream, graph)?;
    for _ in 0..times {
        // SAFETY: the executable is live; its nodes use only the test's own memory.
        unsafe { call!(stream.driver(), cuGraphLaunch(executable, stream.as_raw())) }?;
    }
    stream.synchronize()?;
    // SAFETY: the executable is live, and its launches are done.
    unsafe { call!(stream.driver(), cuGraphExecDestroy(executable)) }?;
    Ok(())
}

fn destroy(stream: &Stream, graph: CUgraph) -> TestResult {
    // SAFETY: the graph is live, and the test does not use it again.
    unsafe { call!(stream.driver(), cuGraphDestroy(graph)) }?;
    Ok(())
}

fn status(stream: &Stream) -> TestResult<CUstreamCaptureStatus> {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the stream is live, and the status is valid for writes.
    unsafe {
        call!(
            stream.driver(),
            cuStreamIsCapturing(stream.as_raw(), &raw mut status)
        )
    }?;
    Ok(status)
}

fn fill(stream: &Stream, address: CUdeviceptr, value: u32, count: usize) -> Result<()> {
    // SAFETY: the tests pass memory with this many words.
    unsafe {
        call!(
            stream.driver(),
            cuMemsetD32Async(address, value, count, stream.as_raw())
        )
    }
}

fn copy(stream: &Stream, to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> Result<()> {
    // SAFETY: the tests pass memory with this many bytes.
    unsafe {
        call!(
            stream.driver(),
            cuMemcpyDtoDAsync_v2(to, from, bytes, stream.as_raw())
        )
    }
}

fn event(test: &TestDriver) -> TestResult<Event> {
    Ok(Event::new(&test.context(), EventFlags::DISABLE_TIMING)?)
}

fn record(event: &Event, stream: &Stream) -> Result<()> {
    // SAFETY: both are live and belong to one context.
    unsafe {
        call!(
            stream.driver(),
            cuEventRecord(event.as_raw(), stream.as_raw())
        )
    }
}

fn wait(stream: &Stream, event: &Event) -> Result<()> {
    // SAFETY: both are live.
    unsafe {
        call!(
            stream.driver(),
            cuStreamWaitEvent(stream.as_raw(), event.as_raw(), 0)
        )
    }
}

/// Allocates four words on the device that only the test's raw calls access.
fn words(test: &TestDriver) -> TestResult<DeviceBuffer<u32>> {
    let buffer = DeviceBuffer::from_slice(&test.stream(), &[0_u32; 4])?;
    assert_eq!(buffer.to_vec()?, [0; 4], "the memory is ready");
    Ok(buffer)
}

fn address(buffer: &DeviceBuffer<u32>) -> CUdeviceptr {
    buffer.as_pointer().as_raw()
}

fn values(buffer: &DeviceBuffer<u32>) -> TestResult<Vec<u32>> {
    Ok(buffer.to_vec()?)
}

fn code<T>(result: Result<T>) -> Option<CUresult> {
    result.err().and_then(|error| error.code())
}

unsafe extern "C" fn count(data: *mut c_void) {
    // SAFETY: the tests pass a counter that outlives the work.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
}

#[driver_test]
fn captured_work_runs_at_each_launch(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let first = words(test)?;
    let second = words(test)?;
    let graph = captured(&stream, || {
        fill(&stream, address(&first), 7, 4)?;
        copy(&stream, address(&second), address(&first), 16)?;
        fill(&stream, address(&first), 9, 2)?;
        Ok(())
    })?;
    stream.synchronize()?;
    assert_eq!(
        (values(&first)?, values(&second)?),
        (vec![0; 4], vec![0; 4])
    );
    run(&stream, graph, 2)?;
    assert_eq!(
        (values(&first)?, values(&second)?),
        (vec![9, 9, 7, 7], vec![7; 4])
    );
    Ok(())
}

/// Copies of host memory read and write it at each launch.
#[driver_test]
fn host_copies_run_at_each_launch(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let device = words(test)?;
    let pinned = |values: [u32; 4]| -> TestResult<_> {
        let mut buffer = PinnedBuffer::<u32>::zeroed(&test.context(), 4, PinnedFlags::empty())?;
        buffer.copy_from_slice(&values);
        Ok(buffer)
    };
    let mut from = pinned([1, 2, 3, 4])?;
    let to = pinned([0; 4])?;
    let graph = captured(&stream, || {
        let driver = stream.driver();
        let raw = stream.as_raw();
        // SAFETY: both sides have 16 bytes, and outlive the graph.
        unsafe {
            call!(
                driver,
                cuMemcpyHtoDAsync_v2(address(&device), from.as_ptr().cast(), 16, raw)
            )
        }?;
        let target = to.as_ptr().cast_mut().cast();
        // SAFETY: both sides have 16 bytes, and outlive the graph.
        unsafe {
            call!(
                driver,
                cuMemcpyDtoHAsync_v2(target, address(&device), 16, raw)
            )
        }?;
        Ok(())
    })?;
    from[0] = 5;
    run(&stream, graph, 1)?;
    assert_eq!(
        values(&device)?,
        [5, 2, 3, 4],
        "the copy ran at the launch of the graph"
    );
    assert_eq!(to[..], [5, 2, 3, 4]);
    Ok(())
}

#[driver_test]
fn captured_launch_keeps_its_arguments(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = words(test)?;
    let library = Library::from_ptx(test.driver(), kernels::FILL)?;
    let kernel = library.kernel::<(CUdeviceptr, u32, u32)>("fill")?;
    let graph = captured(&stream, || {
        for value in [3, 8] {
            let count = value / 2;
            // SAFETY: the buffer has at least as many words as are filled.
            unsafe {
                kernel.launch(
                    &stream,
                    LaunchConfig::for_elements(count as usize),
                    (address(&buffer), value, count),
                )
            }?;
        }
        Ok(())
    })?;
    run(&stream, graph, 1)?;
    assert_eq!(values(&buffer)?, [8; 4]);
    Ok(())
}

#[driver_test]
fn captured_host_function_is_called_at_each_launch(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let calls = AtomicU32::new(0);
    let graph = captured(&stream, || {
        let data = (&raw const calls).cast_mut().cast();
        // SAFETY: the counter outlives the graph.
        unsafe {
            call!(
                stream.driver(),
                cuLaunchHostFunc(stream.as_raw(), Some(count), data)
            )
        }?;
        Ok(())
    })?;
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    run(&stream, graph, 3)?;
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    Ok(())
}

#[driver_test]
fn memory_allocated_in_a_capture_belongs_to_the_graph(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let result = words(test)?;
    let graph = captured(&stream, || {
        let mut memory = 0;
        // SAFETY: the address is valid for writes.
        unsafe {
            call!(
                stream.driver(),
                cuMemAllocAsync(&raw mut memory, 16, stream.as_raw())
            )
        }?;
        fill(&stream, memory, 6, 4)?;
        copy(&stream, address(&result), memory, 16)?;
        // SAFETY: the memory was allocated above, and every access comes before.
        unsafe { call!(stream.driver(), cuMemFreeAsync(memory, stream.as_raw())) }?;
        Ok(())
    })?;
    run(&stream, graph, 2)?;
    assert_eq!(values(&result)?, [6; 4]);
    Ok(())
}

#[driver_test]
fn graph_launched_in_a_capture_is_refused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = words(test)?;
    let inner = captured(&stream, || {
        fill(&stream, address(&buffer), 4, 4)?;
        Ok(())
    })?;
    let executable = instantiated(&stream, inner)?;
    destroy(&stream, inner)?;
    begin(&stream, Mode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    // SAFETY: the executable is live; the memory of its node is the test's own.
    let launched = unsafe { call!(stream.driver(), cuGraphLaunch(executable, stream.as_raw())) };
    assert_eq!(
        code(launched),
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    );
    // The documentation does not specify whether this invalidates the capture.
    let (graph, _) = end(&stream);
    if !graph.is_null() {
        destroy(&stream, graph)?;
    }
    assert_eq!(
        status(&stream)?,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    // SAFETY: the executable is live, and was never launched.
    unsafe { call!(stream.driver(), cuGraphExecDestroy(executable)) }?;
    assert_eq!(values(&buffer)?, [0; 4]);
    Ok(())
}

#[driver_test]
fn captured_value_operations_run_in_order(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = PinnedBuffer::<u32>::zeroed(&test.context(), 2, PinnedFlags::DEVICE_MAP)?;
    let first = buffer.as_ptr().expose_provenance() as u64;
    let graph = captured(&stream, || {
        let driver = stream.driver();
        let raw = stream.as_raw();
        // SAFETY: the address is aligned and in the buffer, which outlives the graph.
        unsafe { call!(driver, cuStreamWriteValue32_v2(raw, first, 3, 0)) }?;
        // SAFETY: as above; the value was written before.
        unsafe { call!(driver, cuStreamWaitValue32_v2(raw, first, 3, 0)) }?;
        // SAFETY: the address is aligned and in the buffer, which outlives the graph.
        unsafe { call!(driver, cuStreamWriteValue32_v2(raw, first + 4, 4, 0)) }?;
        Ok(())
    })?;
    assert_eq!(buffer[..], [0, 0]);
    run(&stream, graph, 1)?;
    assert_eq!(buffer[..], [3, 4]);
    Ok(())
}

/// Returns the capture mode of this thread.
fn mode_set(driver: &Driver) -> CUstreamCaptureMode {
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let mut exchange = || {
        // SAFETY: `mode` is valid for a read of the new mode and a write of the previous one.
        unsafe { call!(driver, cuThreadExchangeStreamCaptureMode(&raw mut mode)) }
            .expect("failed to set the capture mode");
        mode
    };
    let previous_mode = exchange();
    exchange();
    previous_mode
}

/// A capture mode of the thread is restored after a panic in a relaxed operation.
#[driver_test]
fn panic_restores_the_capture_mode(test: &TestDriver) {
    let driver = test.driver();
    let panics = || -> Result<()> {
        assert_eq!(
            mode_set(driver),
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED
        );
        panic!("this panic is part of the test")
    };
    let before = mode_set(driver);
    assert_eq!(before, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL);
    let relaxed = [
        catch_unwind(AssertUnwindSafe(|| {
            with_relaxed_capture_mode(driver, panics)
        })),
        catch_unwind(AssertUnwindSafe(|| {
            with_relaxed_capture_mode_if_possible(driver, panics)
        })),
    ];
    assert!(
        relaxed.iter().all(std::result::Result::is_err),
        "the panic propagates"
    );
    assert_eq!(mode_set(driver), before);
}
