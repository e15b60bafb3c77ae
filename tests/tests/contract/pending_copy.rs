//! Pending copies that own a pinned buffer, after they returned it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use curium_driver::Error;
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, copy};
use curium_tests::{TestDriver, TestResult, driver_test};

const LEN: usize = 1000;

/// A pending copy that gave its buffer back is an error afterwards.
#[driver_test]
fn finished_pending_copy_is_an_error_afterwards(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    let source = PinnedBuffer::from_slice(&test.context(), &[5_u32; LEN], PinnedFlags::empty())?;
    let mut pending =
        copy::upload(&stream, source, &mut target).map_err(|returned| returned.error)?;
    stream.synchronize()?;
    let mut context = Context::from_waker(Waker::noop());
    let back = loop {
        if let Poll::Ready(result) = Pin::new(&mut pending).poll(&mut context) {
            break result?;
        }
    };
    assert_eq!(back.len(), LEN);
    let Poll::Ready(Err(error)) = Pin::new(&mut pending).poll(&mut context) else {
        panic!("there is no buffer")
    };
    assert!(matches!(error, Error::Argument(_)), "{error}");
    let (pending, error) = pending
        .wait()
        .map(drop)
        .expect_err("there is no buffer")
        .into_parts();
    assert!(error.to_string().starts_with("Pending::wait: "), "{error}");
    drop(pending);
    Ok(())
}
