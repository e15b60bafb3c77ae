//! [`EventPool`]: reuse of events.

use curium_driver::{EventFlags, EventPool, Function};
use curium_tests::{Gate, on_driver};

#[test]
fn returned_event_is_reused() {
    on_driver(|test| {
        let (stream, pool) = (
            test.stream(),
            EventPool::new(&test.context(), EventFlags::DISABLE_TIMING),
        );
        test.assert_calls(Function::cuEventCreate, 1, || {
            for _ in 0..10 {
                let event = pool.take().expect("the pool returns an event");
                event.record(&stream).expect("an event can be recorded");
                event.synchronize().expect("an event can be synchronized");
            }
        });
        assert_eq!(pool.idle(), 1);
        test.assert_calls(Function::cuEventDestroy_v2, 1, || pool.trim());
        assert_eq!(pool.idle(), 0);
    });
}

#[test]
fn pool_keeps_no_more_events_than_it_may() {
    on_driver(|test| {
        let pool = EventPool::with_capacity(&test.context(), EventFlags::empty(), 2);
        let events: Vec<_> = (0..5)
            .map(|_| pool.take().expect("the pool returns an event"))
            .collect();
        test.assert_calls(Function::cuEventDestroy_v2, 3, || drop(events));
        assert_eq!(pool.idle(), 2);
    });
}

#[test]
fn event_outlives_its_pool() {
    on_driver(|test| {
        let pool = EventPool::new(&test.context(), EventFlags::empty());
        let event = pool.take().expect("the pool returns an event");
        drop(pool);
        event
            .record(&test.stream())
            .expect("an event can be recorded");
        test.assert_calls(Function::cuEventDestroy_v2, 1, || drop(event));
    });
}

#[test]
fn event_with_a_live_future_is_not_returned_to_the_pool() {
    on_driver(|test| {
        let (stream, pool) = (
            test.stream(),
            EventPool::new(&test.context(), EventFlags::DISABLE_TIMING),
        );
        let event = pool.take().expect("the pool returns an event");
        let gate = Gate::on(&stream);
        event.record(&stream).expect("an event can be recorded");
        let future = event.completion();
        drop(event);
        assert_eq!(
            pool.idle(),
            0,
            "the future would observe the next user's event"
        );
        gate.open();
        pollster::block_on(future).expect("the work succeeds");
    });
}
