//! Borrowed streams: default streams, and those of other libraries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use curium_driver::{Function, Stream};
use curium_memory::DeviceBuffer;
use curium_sys::CUresult;
use curium_tests::{ContextStack, TestDriver, on_driver};

/// Records that it was dropped.
struct Owner(Arc<AtomicBool>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Uses a default stream with its context current.
fn use_default(test: &TestDriver, make: impl FnOnce() -> Stream) {
    let context = test.context();
    let stack = ContextStack::push(test.driver(), &[context.as_raw()]);
    let stream = make();
    let buffer = DeviceBuffer::from_slice(&stream, &[1_u32, 2, 3]).expect("memory suffices");
    assert_eq!(buffer.to_vec().expect("the copy succeeds"), [1, 2, 3]);
    stream.synchronize().expect("a stream can be synchronized");
    drop(buffer);
    test.assert_calls(Function::cuStreamDestroy_v2, 0, || drop(stream));
    stack.assert_unchanged();
}

#[test]
fn default_streams_work_and_are_not_destroyed() {
    on_driver(|test| {
        let context = test.context();
        // SAFETY: the context is current while the stream and its buffer exist, and both stay on this thread.
        use_default(test, || unsafe { Stream::legacy_default(&context) });
        // SAFETY: as above.
        use_default(test, || unsafe { Stream::per_thread_default(&context) });
    });
}

#[test]
fn default_stream_without_a_current_context_is_an_error() {
    on_driver(|test| {
        // SAFETY: the stream is only used to provoke this error.
        let stream = unsafe { Stream::legacy_default(&test.context()) };
        let error = stream.synchronize().expect_err("no context is current");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    });
}

#[test]
fn foreign_stream_keeps_its_owner_and_is_not_destroyed() {
    on_driver(|test| {
        let (context, theirs) = (test.context(), test.stream());
        let is_dropped = Arc::new(AtomicBool::new(false));
        let owner = Owner(Arc::clone(&is_dropped));
        // SAFETY: the stream is live, and outlives its uses in the test.
        let ours = unsafe { Stream::borrow_raw(&context, theirs.as_raw(), owner) };
        let clone = ours.clone();
        assert_ne!(ours, theirs, "streams with different owners are not equal");
        test.assert_calls(Function::cuStreamDestroy_v2, 0, || drop(ours));
        clone.synchronize().expect("the clone still works");
        assert!(!is_dropped.load(Ordering::Relaxed));
        clone.close().expect("the owner is dropped");
        assert!(is_dropped.load(Ordering::Relaxed));
        theirs.synchronize().expect("the stream is live");
    });
}

#[test]
fn ownership_of_a_raw_stream_is_taken_and_released() {
    on_driver(|test| {
        let (context, stream) = (test.context(), test.stream());
        let clone = stream.clone();
        let (stream, error) = stream.into_raw().expect_err("a clone exists").into_parts();
        assert!(error.to_string().contains("still in use"), "{error}");
        drop(clone);
        let raw = test.assert_calls(Function::cuStreamDestroy_v2, 0, || {
            stream.into_raw().expect("it is the only one")
        });
        // SAFETY: the handle is live and has no other owner.
        let stream = unsafe { Stream::from_raw(&context, raw) };
        stream.synchronize().expect("the stream works");
        test.assert_calls(Function::cuStreamDestroy_v2, 1, || drop(stream));
    });
}

pub(crate) mod operations {
    use curium_driver::Stream;

    use crate::operations::{Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[("Stream::into_raw", |fixture| {
        let raw = fixture.context.stream()?.into_raw()?;
        // SAFETY: the handle is live and has no other owner.
        made(unsafe { Stream::from_raw(&fixture.context, raw) })
    })];
}
