//! Borrowed streams: default streams, and those of other libraries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use curium_driver::AsRawStream as _;
use curium_driver::{Function, Stream};
use curium_memory::DeviceBuffer;
use curium_sys::CUresult;
use curium_tests::{ContextStack, TestDriver, TestResult, driver_test};

/// Records that it was dropped.
struct Owner(Arc<AtomicBool>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Uses a default stream with its context current.
fn use_default(test: &TestDriver, make: impl FnOnce() -> Stream) -> TestResult {
    let context = test.context();
    let stack = ContextStack::push(test.driver(), &[context.as_raw()]);
    let stream = make();
    let buffer = DeviceBuffer::from_slice(&stream, &[1_u32, 2, 3])?;
    assert_eq!(buffer.to_vec()?, [1, 2, 3]);
    stream.synchronize()?;
    drop(buffer);
    test.assert_calls(Function::cuStreamDestroy_v2, 0, || drop(stream));
    stack.assert_unchanged("the work");
    Ok(())
}

#[driver_test]
fn default_streams_work_and_are_not_destroyed(test: &TestDriver) -> TestResult {
    let context = test.context();
    // SAFETY: the context is current while the stream and its buffer exist, and both stay on this
    // thread.
    use_default(test, || unsafe { Stream::legacy_default(&context) })?;
    // SAFETY: the context is current while the stream and its buffer exist, and both stay on this
    // thread.
    use_default(test, || unsafe { Stream::per_thread_default(&context) })?;
    Ok(())
}

/// A default stream without a current context is an error.
#[driver_test]
fn default_stream_requires_a_current_context(test: &TestDriver) {
    // SAFETY: the stream is only used to provoke this error.
    let stream = unsafe { Stream::legacy_default(&test.context()) };
    let error = stream.synchronize().expect_err("no context is current");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));
}

/// A foreign stream keeps its owner and is not destroyed.
#[driver_test]
fn borrowed_stream_is_not_destroyed(test: &TestDriver) -> TestResult {
    let context = test.context();
    let theirs = test.stream();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let owner = Owner(Arc::clone(&is_dropped));
    // SAFETY: the stream is live, and outlives its uses in the test.
    let ours = unsafe { Stream::borrow_raw(&context, theirs.as_raw(), owner) };
    let clone = ours.clone();
    assert_ne!(ours, theirs, "streams with different owners are not equal");
    test.assert_calls(Function::cuStreamDestroy_v2, 0, || drop(ours));
    clone.synchronize()?;
    assert!(!is_dropped.load(Ordering::Relaxed));
    clone.close()?;
    assert!(is_dropped.load(Ordering::Relaxed));
    theirs.synchronize()?;
    Ok(())
}

#[driver_test]
fn raw_stream_ownership_is_transferred(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let clone = stream.clone();
    let (stream, error) = stream.into_raw().expect_err("a clone exists").into_parts();
    assert!(error.to_string().contains("still in use"), "{error}");
    drop(clone);
    let raw = test.assert_calls(Function::cuStreamDestroy_v2, 0, || -> TestResult<_> {
        Ok(stream.into_raw()?)
    })?;
    // SAFETY: the handle is live and has no other owner.
    let stream = unsafe { Stream::from_raw(&context, raw) };
    stream.synchronize()?;
    test.assert_calls(Function::cuStreamDestroy_v2, 1, || drop(stream));
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Stream;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[("Stream::into_raw", |fixture| {
        let raw = fixture.context.stream()?.into_raw()?;
        // SAFETY: the handle is live and has no other owner.
        made(unsafe { Stream::from_raw(&fixture.context, raw) })
    })];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
