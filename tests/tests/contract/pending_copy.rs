//! Pending copies that own a pinned buffer, after they returned it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use curium_driver::Error;
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags, copy};
use curium_tests::on_driver;

const LEN: usize = 1000;

#[test]
fn pending_copy_that_gave_its_buffer_back_is_an_error_afterwards() {
    on_driver(|test| {
        let stream = test.stream();
        let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN).expect("memory suffices");
        let source = PinnedBuffer::from_slice(&test.context(), &[5_u32; LEN], PinnedFlags::empty());
        let source = source.expect("memory suffices");
        let pending = copy::upload(&stream, source, &mut target).map_err(|returned| returned.error);
        let mut pending = pending.expect("the lengths are equal");
        stream.synchronize().expect("the copy runs");
        let mut context = Context::from_waker(Waker::noop());
        let back = loop {
            if let Poll::Ready(result) = Pin::new(&mut pending).poll(&mut context) {
                break result.expect("the copy succeeds");
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
    });
}
