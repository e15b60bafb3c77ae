//! [`EventPool`]: reuse of events.

use curium_driver::{EventFlags, EventPool, Function};
use curium_tests::{Gate, TestDriver, TestResult, driver_test};

#[driver_test]
fn returned_event_is_reused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let pool = EventPool::new(&test.context(), EventFlags::DISABLE_TIMING);
    test.assert_calls(Function::cuEventCreate, 1, || -> TestResult<_> {
        for _ in 0..10 {
            let event = pool.take()?;
            event.record(&stream)?;
            event.synchronize()?;
        }
        Ok(())
    })?;
    assert_eq!(pool.idle(), 1);
    test.assert_calls(Function::cuEventDestroy_v2, 1, || pool.trim());
    assert_eq!(pool.idle(), 0);
    Ok(())
}

#[driver_test]
fn pool_keeps_no_more_events_than_it_may(test: &TestDriver) {
    let pool = EventPool::with_capacity(&test.context(), EventFlags::empty(), 2);
    let events: Vec<_> = (0..5)
        .map(|_| pool.take().expect("the pool returns an event"))
        .collect();
    test.assert_calls(Function::cuEventDestroy_v2, 3, || drop(events));
    assert_eq!(pool.idle(), 2);
}

#[driver_test]
fn event_outlives_its_pool(test: &TestDriver) -> TestResult {
    let pool = EventPool::new(&test.context(), EventFlags::empty());
    let event = pool.take()?;
    drop(pool);
    event.record(&test.stream())?;
    test.assert_calls(Function::cuEventDestroy_v2, 1, || drop(event));
    Ok(())
}

/// An event with a live future is not returned to the pool.
#[driver_test]
fn event_with_a_future_is_not_pooled(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let pool = EventPool::new(&test.context(), EventFlags::DISABLE_TIMING);
    let event = pool.take()?;
    let gate = Gate::on(&stream);
    event.record(&stream)?;
    let future = event.completion();
    drop(event);
    assert_eq!(
        pool.idle(),
        0,
        "the future would observe the next user's event"
    );
    gate.open();
    pollster::block_on(future)?;
    Ok(())
}
