//! [`StreamPool`]: reuse of streams.

use curium_driver::AsRawStream as _;
use curium_driver::{Function, StreamOptions, StreamPool};
use curium_tests::{TestDriver, TestResult, driver_test};

#[driver_test]
fn returned_stream_is_reused(test: &TestDriver) -> TestResult {
    let pool = StreamPool::new(&test.context(), StreamOptions::new());
    test.assert_calls(
        Function::cuStreamCreateWithPriority,
        1,
        || -> TestResult<_> {
            for _ in 0..10 {
                let stream = pool.take()?;
                stream.synchronize()?;
            }
            Ok(())
        },
    )?;
    assert_eq!(pool.idle(), 1);
    test.assert_calls(Function::cuStreamDestroy_v2, 1, || pool.trim());
    assert_eq!(pool.idle(), 0);
    Ok(())
}

#[driver_test]
fn streams_are_reused_in_return_order(test: &TestDriver) -> TestResult {
    let pool = StreamPool::new(&test.context(), StreamOptions::new());
    let first = pool.take()?;
    let second = pool.take()?;
    let handle = second.as_raw();
    drop(second);
    drop(first);
    assert_eq!(pool.take()?.as_raw(), handle);
    Ok(())
}

#[driver_test]
fn stream_with_a_clone_is_not_returned_to_the_pool(test: &TestDriver) -> TestResult {
    let pool = StreamPool::new(&test.context(), StreamOptions::new());
    let stream = pool.take()?;
    let clone = (*stream).clone();
    drop(stream);
    assert_eq!(
        pool.idle(),
        0,
        "the clone would share the stream with the next user"
    );
    test.assert_calls(Function::cuStreamDestroy_v2, 1, || drop(clone));
    Ok(())
}

#[driver_test]
fn pool_keeps_no_more_streams_than_it_may(test: &TestDriver) {
    let pool = StreamPool::with_capacity(&test.context(), StreamOptions::new(), 1);
    let streams: Vec<_> = (0..3)
        .map(|_| pool.take().expect("the pool returns a stream"))
        .collect();
    test.assert_calls(Function::cuStreamDestroy_v2, 2, || drop(streams));
    assert_eq!(pool.idle(), 1);
}

pub(crate) mod operations {
    use curium_driver::{EventFlags, EventPool, StreamOptions, StreamPool};

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("HandlePool::trim", |fixture| {
            let streams = StreamPool::new(&fixture.context, StreamOptions::new());
            let events = EventPool::new(&fixture.context, EventFlags::empty());
            drop((streams.take()?, events.take()?));
            streams.trim();
            events.trim();
            made(())
        }),
        (
            "HandlePool::take and Event::create and Stream::create",
            |fixture| {
                let streams = StreamPool::new(&fixture.context, StreamOptions::new());
                made((
                    streams.take()?,
                    EventPool::new(&fixture.context, EventFlags::empty()).take()?,
                ))
            },
        ),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
