//! Forbidden calls during capture: the code of each violation, and the invalidated capture.

use std::ptr;
use std::thread;

use curium_driver::{Result, Stream, StreamFlags, StreamOptions, call};
use curium_sys::{
    CUresult, CUstream, CUstreamCaptureMode, CUstreamCaptureMode_enum as Mode,
    CUstreamCaptureStatus,
};
use curium_tests::{ContextStack, TestDriver, on_driver};

use super::{
    address, begin, captured, code, copy, destroy, end, event, fill, record, status, wait, words,
};

const UNSUPPORTED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

/// Asserts that a capture was invalidated: its streams reject work, and it ends without a graph.
#[track_caller]
fn assert_lost(stream: &Stream) {
    assert_eq!(
        status(stream),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
    );
    let (graph, result) = end(stream);
    assert_eq!(
        code(result),
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    );
    assert!(graph.is_null());
    assert_eq!(
        status(stream),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    );
}

/// Asserts the code of a violation while a stream captures, and that it invalidates the capture.
#[track_caller]
pub(super) fn assert_offence(
    stream: &Stream,
    mode: CUstreamCaptureMode,
    expected: CUresult,
    offence: impl FnOnce() -> Result<()>,
) {
    begin(stream, mode).expect("a capture can begin");
    assert_eq!(code(offence()), Some(expected));
    assert_lost(stream);
}

#[test]
fn capture_begins_once_and_ends_where_it_began() {
    on_driver(|test| {
        let (stream, other) = (test.stream(), test.stream());
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
        begin(&stream, mode).expect("a capture can begin");
        assert_eq!(
            code(begin(&stream, mode)),
            Some(CUresult::CUDA_ERROR_ILLEGAL_STATE)
        );
        let forked = event(test);
        record(&forked, &stream).expect("an event can be recorded in a capture");
        wait(&other, &forked).expect("another stream can join");
        assert_eq!(
            code(end(&other).1),
            Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
        );
        // The documentation does not specify whether this invalidates the capture.
        let (graph, _) = end(&stream);
        if !graph.is_null() {
            destroy(&stream, graph);
        }
        assert_eq!(
            status(&other),
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
        );
    });
}

#[test]
fn legacy_stream_cannot_capture_and_its_work_ends_the_captures_of_blocking_streams() {
    on_driver(|test| {
        let (context, buffer) = (test.context(), words(test));
        let options = StreamOptions::new().with_flags(StreamFlags::empty());
        let blocking = Stream::new(&context, options).expect("a stream can be created");
        let scope = ContextStack::push(test.driver(), &[context.as_raw()]);
        let legacy: CUstream = ptr::null_mut();
        let mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let driver = test.driver();
        // SAFETY: null is the default stream of the current context.
        let refused = unsafe { call!(driver, cuStreamBeginCapture_v2(legacy, mode)) };
        assert_eq!(code(refused), Some(UNSUPPORTED));
        let implicit = CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        begin(&blocking, mode).expect("a capture can begin");
        let mut found = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: null is the default stream of the current context; the status is valid for writes.
        let asked = unsafe { call!(driver, cuStreamIsCapturing(legacy, &raw mut found)) };
        assert_eq!(code(asked), Some(implicit));
        assert_eq!(
            status(&blocking),
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
        );
        // SAFETY: the buffer has this many words.
        let work = unsafe { call!(driver, cuMemsetD32Async(address(&buffer), 1, 4, legacy)) };
        assert_eq!(code(work), Some(implicit));
        assert_lost(&blocking);
        scope.clear();
    });
}

#[test]
fn waiting_for_a_capture_or_querying_it_invalidates_it_in_every_mode() {
    on_driver(|test| {
        let (stream, recorded) = (test.stream(), event(test));
        let raw = stream.as_raw();
        for mode in 0..3 {
            let mode = CUstreamCaptureMode(mode);
            // SAFETY: the stream is live.
            assert_offence(&stream, mode, UNSUPPORTED, || unsafe {
                call!(stream.driver(), cuStreamSynchronize(raw))
            });
            // SAFETY: the stream is live.
            assert_offence(&stream, mode, UNSUPPORTED, || unsafe {
                call!(stream.driver(), cuStreamQuery(raw))
            });
            assert_offence(&stream, mode, UNSUPPORTED, || test.context().synchronize());
            assert_offence(&stream, mode, CUresult::CUDA_ERROR_CAPTURED_EVENT, || {
                record(&recorded, &stream)?;
                // SAFETY: the event is live.
                unsafe { call!(stream.driver(), cuEventQuery(recorded.as_raw())) }
            });
        }
        // SAFETY: the event is live.
        let asked = unsafe { call!(stream.driver(), cuEventSynchronize(recorded.as_raw())) };
        assert_eq!(
            code(asked),
            Some(CUresult::CUDA_ERROR_INVALID_VALUE),
            "the last record was in an invalidated capture"
        );
        record(&recorded, &stream).expect("an event can be recorded");
        recorded
            .synchronize()
            .expect("an event recorded outside of captures can be synchronized");
    });
}

#[test]
fn work_that_cannot_be_a_node_invalidates_the_capture() {
    on_driver(|test| {
        let stream = test.stream();
        assert_offence(
            &stream,
            Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
            UNSUPPORTED,
            || {
                unsafe extern "C" fn nothing(_: CUstream, _: CUresult, _: *mut std::ffi::c_void) {}
                let (raw, data) = (stream.as_raw(), ptr::null_mut());
                // SAFETY: the callback accepts any argument.
                unsafe {
                    call!(
                        stream.driver(),
                        cuStreamAddCallback(raw, Some(nothing), data, 0)
                    )
                }
            },
        );
    });
}

#[test]
fn invalidated_capture_refuses_work() {
    on_driver(|test| {
        let (stream, buffer) = (test.stream(), words(test));
        let mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;
        begin(&stream, mode).expect("a capture can begin");
        // SAFETY: the stream is live.
        let asked = unsafe { call!(stream.driver(), cuStreamQuery(stream.as_raw())) };
        assert_eq!(code(asked), Some(UNSUPPORTED));
        let work = fill(&stream, address(&buffer), 1, 4);
        assert_eq!(
            code(work),
            Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
        );
        assert_lost(&stream);
        fill(&stream, address(&buffer), 1, 4).expect("the stream works again");
        stream.synchronize().expect("a stream can be synchronized");
    });
}

#[test]
fn stream_that_was_not_joined_leaves_no_graph() {
    on_driver(|test| {
        let (main, side, buffer) = (test.stream(), test.stream(), words(test));
        let forked = event(test);
        begin(&main, Mode::CU_STREAM_CAPTURE_MODE_RELAXED).expect("a capture can begin");
        record(&forked, &main).expect("an event can be recorded in a capture");
        wait(&side, &forked).expect("another stream can join");
        fill(&side, address(&buffer), 1, 4).expect("a fill can be captured");
        let (graph, result) = end(&main);
        assert_eq!(
            code(result),
            Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
        );
        assert!(graph.is_null());
        assert_eq!(
            status(&side),
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
        );
    });
}

#[test]
fn wait_for_work_outside_the_capture_invalidates_it() {
    on_driver(|test| {
        let (stream, other, outside) = (test.stream(), test.stream(), event(test));
        record(&outside, &other).expect("an event can be recorded");
        let isolation = CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        assert_offence(
            &stream,
            Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
            isolation,
            || wait(&stream, &outside),
        );
    });
}

#[test]
fn wait_of_one_capture_for_another_invalidates_both() {
    on_driver(|test| {
        let (first, second, recorded) = (test.stream(), test.stream(), event(test));
        let mode = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;
        begin(&first, mode).expect("a capture can begin");
        record(&recorded, &first).expect("an event can be recorded in a capture");
        let merge = CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE;
        assert_offence(&second, mode, merge, || wait(&second, &recorded));
        assert_lost(&first);
    });
}

#[test]
fn only_a_relaxed_capture_ends_on_another_thread() {
    on_driver(|test| {
        let stream = test.stream();
        let end_elsewhere = || {
            thread::scope(|scope| {
                let ended = scope.spawn(|| {
                    let (graph, result) = end(&stream);
                    (graph.addr(), code(result))
                });
                ended.join().expect("the thread does not panic")
            })
        };
        begin(&stream, Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).expect("a capture can begin");
        assert_eq!(
            end_elsewhere(),
            (0, Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD))
        );
        let (graph, _) = end(&stream);
        if !graph.is_null() {
            destroy(&stream, graph);
        }
        begin(&stream, Mode::CU_STREAM_CAPTURE_MODE_RELAXED).expect("a capture can begin");
        let (graph, result) = end_elsewhere();
        assert_eq!(result, None);
        destroy(&stream, ptr::with_exposed_provenance_mut(graph));
    });
}

/// Allocates and frees memory on the calling thread with its own capture mode.
fn allocate(test: &TestDriver, mode: CUstreamCaptureMode) -> Result<()> {
    let (driver, context) = (test.driver(), test.context());
    let scope = ContextStack::push(driver, &[context.as_raw()]);
    let exchange = |mut mode: CUstreamCaptureMode| {
        // SAFETY: the mode is valid for writes.
        unsafe { call!(driver, cuThreadExchangeStreamCaptureMode(&raw mut mode)) }
            .expect("the mode can be changed");
        mode
    };
    let before = exchange(mode);
    let mut memory = 0;
    // SAFETY: the address is valid for writes.
    let allocated = unsafe { call!(driver, cuMemAlloc_v2(&raw mut memory, 16)) };
    if allocated.is_ok() {
        // SAFETY: the memory was allocated above and is not in use.
        unsafe { call!(driver, cuMemFree_v2(memory)) }.expect("memory can be freed");
    }
    exchange(before);
    scope.clear();
    allocated
}

#[test]
fn unsafe_call_of_the_capturing_thread_is_forbidden_unless_one_of_the_modes_is_relaxed() {
    on_driver(|test| {
        let stream = test.stream();
        let (global, local, relaxed) = (
            CUstreamCaptureMode(0),
            CUstreamCaptureMode(1),
            CUstreamCaptureMode(2),
        );
        for (capture, thread) in [
            (global, global),
            (global, local),
            (local, global),
            (local, local),
        ] {
            assert_offence(&stream, capture, UNSUPPORTED, || allocate(test, thread));
        }
        for (capture, thread) in [
            (global, relaxed),
            (local, relaxed),
            (relaxed, global),
            (relaxed, local),
        ] {
            let graph = {
                begin(&stream, capture).expect("a capture can begin");
                allocate(test, thread).expect("the modes allow it");
                end(&stream).0
            };
            destroy(&stream, graph);
        }
    });
}

#[test]
fn unsafe_call_of_another_thread_is_forbidden_by_global_captures_only() {
    on_driver(|test| {
        let stream = test.stream();
        let (global, local, relaxed) = (
            CUstreamCaptureMode(0),
            CUstreamCaptureMode(1),
            CUstreamCaptureMode(2),
        );
        let elsewhere = |mode| {
            thread::scope(|scope| {
                scope
                    .spawn(|| code(allocate(test, mode)))
                    .join()
                    .expect("the thread does not panic")
            })
        };
        begin(&stream, global).expect("a capture can begin");
        assert_eq!(elsewhere(global), Some(UNSUPPORTED));
        assert_lost(&stream);
        for (capture, thread) in [
            (global, local),
            (global, relaxed),
            (local, global),
            (relaxed, global),
        ] {
            begin(&stream, capture).expect("a capture can begin");
            assert_eq!(
                elsewhere(thread),
                None,
                "capture {capture:?}, thread {thread:?}"
            );
            destroy(&stream, end(&stream).0);
        }
    });
}

#[test]
fn batch_of_copies_is_refused_and_the_capture_stays_valid() {
    on_driver(|test| {
        let (stream, first, second) = (test.stream(), words(test), words(test));
        let context = test.context();
        let scope = ContextStack::push(test.driver(), &[context.as_raw()]);
        let graph = captured(&stream, || {
            let (mut to, mut from, mut size, mut first_of) =
                (address(&first), address(&second), 16, 0);
            let mut attributes = curium_sys::CUmemcpyAttributes {
                srcAccessOrder:
                    curium_sys::CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
                ..Default::default()
            };
            let (to, from, size) = (&raw mut to, &raw mut from, &raw mut size);
            let (attributes, first_of) = (&raw mut attributes, &raw mut first_of);
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
            copy(&stream, address(&first), address(&second), 16).expect("a copy can be captured");
        });
        scope.clear();
        destroy(&stream, graph);
    });
}
