//! Forbidden calls during capture: the code of each violation, and the invalidated capture.

use std::ptr;
use std::thread;

use curium_driver::AsRawStream as _;
use curium_driver::{Result, Stream, StreamFlags, StreamOptions, call};
use curium_sys::{
    CUresult, CUstream, CUstreamCaptureMode, CUstreamCaptureMode_enum as Mode,
    CUstreamCaptureStatus,
};
use curium_tests::{ContextStack, TestDriver, TestResult, driver_test, resume_panic};

use super::{
    address, begin, captured, code, copy, destroy, end, event, fill, record, status, wait, words,
};

const UNSUPPORTED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

/// Asserts that a capture was invalidated: its streams reject work, and it ends without a graph.
#[track_caller]
fn assert_lost(stream: &Stream) -> TestResult {
    assert_eq!(
        status(stream)?,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
    );
    let (graph, result) = end(stream);
    assert_eq!(
        code(result),
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    );
    assert!(graph.is_null());
    assert_eq!(
        status(stream)?,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    Ok(())
}

/// Asserts the code of a violation while a stream captures, and that it invalidates the capture.
#[track_caller]
pub(super) fn assert_offence(
    stream: &Stream,
    mode: CUstreamCaptureMode,
    expected: CUresult,
    offence: impl FnOnce() -> Result<()>,
) -> TestResult {
    begin(stream, mode)?;
    assert_eq!(code(offence()), Some(expected));
    assert_lost(stream)?;
    Ok(())
}

#[driver_test]
fn capture_begins_once_and_ends_where_it_began(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;
    assert_eq!(
        code(end(&stream).1),
        Some(CUresult::CUDA_ERROR_ILLEGAL_STATE)
    );
    let unknown = CUstreamCaptureMode(3);
    assert_eq!(
        code(begin(&stream, unknown)),
        Some(CUresult::CUDA_ERROR_INVALID_VALUE)
    );
    begin(&stream, mode)?;
    assert_eq!(
        code(begin(&stream, mode)),
        Some(CUresult::CUDA_ERROR_ILLEGAL_STATE)
    );
    let forked = event(test)?;
    record(&forked, &stream)?;
    wait(&other, &forked)?;
    assert_eq!(
        code(end(&other).1),
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
    );
    // The documentation does not specify whether this invalidates the capture.
    let (graph, _) = end(&stream);
    if !graph.is_null() {
        destroy(&stream, graph)?;
    }
    assert_eq!(
        status(&other)?,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    Ok(())
}

/// The legacy stream cannot capture and its work ends the captures of blocking streams.
#[driver_test]
fn legacy_stream_work_ends_blocking_captures(test: &TestDriver) -> TestResult {
    let context = test.context();
    let buffer = words(test)?;
    let options = StreamOptions::new().with_flags(StreamFlags::empty());
    let blocking = Stream::new(&context, options)?;
    let scope = ContextStack::push(test.driver(), &[context.as_raw()]);
    let legacy: CUstream = ptr::null_mut();
    let mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let driver = test.driver();
    // SAFETY: null is the default stream of the current context.
    let refused = unsafe { call!(driver, cuStreamBeginCapture_v2(legacy, mode)) };
    assert_eq!(code(refused), Some(UNSUPPORTED));
    let implicit = CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    begin(&blocking, mode)?;
    let mut capture_status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: null is the default stream of the current context; the status is valid for writes.
    let asked = unsafe { call!(driver, cuStreamIsCapturing(legacy, &raw mut capture_status)) };
    assert_eq!(code(asked), Some(implicit));
    assert_eq!(
        status(&blocking)?,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
    );
    // SAFETY: the buffer has this many words.
    let work = unsafe { call!(driver, cuMemsetD32Async(address(&buffer), 1, 4, legacy)) };
    assert_eq!(code(work), Some(implicit));
    assert_lost(&blocking)?;
    scope.clear();
    Ok(())
}

/// Waiting for a capture or querying it invalidates it in every mode.
#[driver_test]
fn waits_and_queries_invalidate_in_every_mode(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let recorded = event(test)?;
    let raw = stream.as_raw();
    for mode in 0..3 {
        let mode = CUstreamCaptureMode(mode);
        // SAFETY: the stream is live.
        assert_offence(&stream, mode, UNSUPPORTED, || unsafe {
            call!(stream.driver(), cuStreamSynchronize(raw))
        })?;
        // SAFETY: the stream is live.
        assert_offence(&stream, mode, UNSUPPORTED, || unsafe {
            call!(stream.driver(), cuStreamQuery(raw))
        })?;
        assert_offence(&stream, mode, UNSUPPORTED, || test.context().synchronize())?;
        assert_offence(&stream, mode, CUresult::CUDA_ERROR_CAPTURED_EVENT, || {
            record(&recorded, &stream)?;
            // SAFETY: the event is live.
            unsafe { call!(stream.driver(), cuEventQuery(recorded.as_raw())) }
        })?;
    }
    // SAFETY: the event is live.
    let asked = unsafe { call!(stream.driver(), cuEventSynchronize(recorded.as_raw())) };
    assert_eq!(
        code(asked),
        Some(CUresult::CUDA_ERROR_INVALID_VALUE),
        "the last record was in an invalidated capture"
    );
    record(&recorded, &stream)?;
    recorded.synchronize()?;
    Ok(())
}

#[driver_test]
fn work_that_cannot_be_a_node_invalidates_the_capture(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    assert_offence(
        &stream,
        Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
        UNSUPPORTED,
        || {
            unsafe extern "C" fn nothing(_: CUstream, _: CUresult, _: *mut std::ffi::c_void) {}
            let raw = stream.as_raw();
            let data = ptr::null_mut();
            // SAFETY: the callback accepts any argument.
            unsafe {
                call!(
                    stream.driver(),
                    cuStreamAddCallback(raw, Some(nothing), data, 0)
                )
            }
        },
    )?;
    Ok(())
}

#[driver_test]
fn invalidated_capture_refuses_work(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = words(test)?;
    let mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;
    begin(&stream, mode)?;
    // SAFETY: the stream is live.
    let asked = unsafe { call!(stream.driver(), cuStreamQuery(stream.as_raw())) };
    assert_eq!(code(asked), Some(UNSUPPORTED));
    let work = fill(&stream, address(&buffer), 1, 4);
    assert_eq!(
        code(work),
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    );
    assert_lost(&stream)?;
    fill(&stream, address(&buffer), 1, 4)?;
    stream.synchronize()?;
    Ok(())
}

#[driver_test]
fn stream_that_was_not_joined_leaves_no_graph(test: &TestDriver) -> TestResult {
    let main = test.stream();
    let side = test.stream();
    let buffer = words(test)?;
    let forked = event(test)?;
    begin(&main, Mode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    record(&forked, &main)?;
    wait(&side, &forked)?;
    fill(&side, address(&buffer), 1, 4)?;
    let (graph, result) = end(&main);
    assert_eq!(
        code(result),
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    );
    assert!(graph.is_null());
    assert_eq!(
        status(&side)?,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
    Ok(())
}

#[driver_test]
fn wait_for_work_outside_the_capture_invalidates_it(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let outside = event(test)?;
    record(&outside, &other)?;
    let isolation = CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    assert_offence(
        &stream,
        Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
        isolation,
        || wait(&stream, &outside),
    )?;
    Ok(())
}

#[driver_test]
fn wait_between_captures_invalidates_both(test: &TestDriver) -> TestResult {
    let first = test.stream();
    let second = test.stream();
    let recorded = event(test)?;
    let mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;
    begin(&first, mode)?;
    record(&recorded, &first)?;
    let merge = CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE;
    assert_offence(&second, mode, merge, || wait(&second, &recorded))?;
    assert_lost(&first)?;
    Ok(())
}

#[driver_test]
fn only_a_relaxed_capture_ends_on_another_thread(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let end_elsewhere = || {
        thread::scope(|scope| {
            let ended = scope.spawn(|| {
                let (graph, result) = end(&stream);
                (graph.addr(), code(result))
            });
            resume_panic(ended.join())
        })
    };
    begin(&stream, Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    assert_eq!(
        end_elsewhere(),
        (0, Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD))
    );
    let (graph, _) = end(&stream);
    if !graph.is_null() {
        destroy(&stream, graph)?;
    }
    begin(&stream, Mode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    let (graph, result) = end_elsewhere();
    assert_eq!(result, None);
    destroy(&stream, ptr::with_exposed_provenance_mut(graph))?;
    Ok(())
}

/// Allocates and frees memory on the calling thread with its own capture mode.
fn allocate(test: &TestDriver, mode: CUstreamCaptureMode) -> Result<()> {
    let driver = test.driver();
    let context = test.context();
    let scope = ContextStack::push(driver, &[context.as_raw()]);
    let exchange = |mut mode: CUstreamCaptureMode| {
        // SAFETY: the mode is valid for writes.
        unsafe { call!(driver, cuThreadExchangeStreamCaptureMode(&raw mut mode)) }
            .expect("failed to exchange the capture mode");
        mode
    };
    let before = exchange(mode);
    let mut memory = 0;
    // SAFETY: the address is valid for writes.
    let allocated = unsafe { call!(driver, cuMemAlloc_v2(&raw mut memory, 16)) };
    if allocated.is_ok() {
        // SAFETY: the memory was allocated above and is not in use.
        unsafe { call!(driver, cuMemFree_v2(memory)) }?;
    }
    exchange(before);
    scope.clear();
    allocated
}

/// Unsafe call of the capturing thread is forbidden unless one of the modes is relaxed.
#[driver_test]
fn unsafe_call_requires_a_relaxed_mode(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let global = CUstreamCaptureMode(0);
    let local = CUstreamCaptureMode(1);
    let relaxed = CUstreamCaptureMode(2);
    for (capture, thread) in [
        (global, global),
        (global, local),
        (local, global),
        (local, local),
    ] {
        assert_offence(&stream, capture, UNSUPPORTED, || allocate(test, thread))?;
    }
    for (capture, thread) in [
        (global, relaxed),
        (local, relaxed),
        (relaxed, global),
        (relaxed, local),
    ] {
        let graph = {
            begin(&stream, capture)?;
            allocate(test, thread)?;
            end(&stream).0
        };
        destroy(&stream, graph)?;
    }
    Ok(())
}

/// Unsafe call of another thread is forbidden by global captures only.
#[driver_test]
fn only_global_captures_restrict_other_threads(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let global = CUstreamCaptureMode(0);
    let local = CUstreamCaptureMode(1);
    let relaxed = CUstreamCaptureMode(2);
    let elsewhere = |mode| {
        thread::scope(|scope| {
            scope
                .spawn(|| code(allocate(test, mode)))
                .join()
                .expect("the thread does not panic")
        })
    };
    begin(&stream, global)?;
    assert_eq!(elsewhere(global), Some(UNSUPPORTED));
    assert_lost(&stream)?;
    for (capture, thread) in [
        (global, local),
        (global, relaxed),
        (local, global),
        (relaxed, global),
    ] {
        begin(&stream, capture)?;
        assert_eq!(
            elsewhere(thread),
            None,
            "capture {capture:?}, thread {thread:?}"
        );
        destroy(&stream, end(&stream).0)?;
    }
    Ok(())
}

/// A batch of copies is refused and the capture stays valid.
#[driver_test]
fn copy_batch_is_refused_in_a_capture(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let first = words(test)?;
    let second = words(test)?;
    let context = test.context();
    let scope = ContextStack::push(test.driver(), &[context.as_raw()]);
    let graph = captured(&stream, || {
        let mut to = address(&first);
        let mut from = address(&second);
        let mut size = 16;
        let mut first_of = 0;
        let mut attributes = curium_sys::CUmemcpyAttributes {
            srcAccessOrder: curium_sys::CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
            ..Default::default()
        };
        let to = &raw mut to;
        let from = &raw mut from;
        let size = &raw mut size;
        let attributes = &raw mut attributes;
        let first_of = &raw mut first_of;
        let raw = stream.as_raw();
        // SAFETY: both buffers have 16 bytes, and each list has one entry.
        let refused = unsafe {
            call!(
                stream.driver(),
                cuMemcpyBatchAsync_v2(to, from, size, 1, attributes, first_of, 1, raw)
            )
        };
        if let Some(code) = code(refused) {
            assert_eq!(code, UNSUPPORTED);
        }
        copy(&stream, address(&first), address(&second), 16)?;
        Ok(())
    })?;
    scope.clear();
    destroy(&stream, graph)?;
    Ok(())
}
