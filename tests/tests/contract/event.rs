//! [`Event`]: recording, timing and destruction.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use curium_driver::{
    Error, Event, EventFlags, Function, Graph, IpcEventHandle, RecordFlags, Result, observe_calls,
};
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{During, Gate, TestDriver, on_driver, on_simulator, stream_work};

fn event(test: &TestDriver, flags: EventFlags) -> Event {
    Event::new(&test.context(), flags).expect("an event can be created")
}

fn code<T>(result: Result<T>) -> Option<CUresult> {
    result.err().and_then(|error| error.code())
}

#[test]
fn event_never_recorded_counts_as_finished_but_has_no_time() {
    on_driver(|test| {
        let (begin, end) = (
            event(test, EventFlags::empty()),
            event(test, EventFlags::empty()),
        );
        assert!(begin.is_finished().expect("an event can be queried"));
        begin.synchronize().expect("there is nothing to wait for");
        assert_eq!(
            code(end.milliseconds_since(&begin)),
            Some(CUresult::CUDA_ERROR_INVALID_HANDLE)
        );
    });
}

#[test]
fn event_is_finished_when_the_work_before_it_is_done() {
    on_driver(|test| {
        let (stream, event) = (test.stream(), event(test, EventFlags::empty()));
        let gate = Gate::on(&stream);
        event.record(&stream).expect("an event can be recorded");
        assert!(!event.is_finished().expect("an event can be queried"));
        gate.open();
        event.synchronize().expect("an event can be synchronized");
        assert!(event.is_finished().expect("an event can be queried"));
    });
}

#[test]
fn event_recorded_again_marks_the_later_point() {
    on_driver(|test| {
        let (stream, event) = (test.stream(), event(test, EventFlags::DISABLE_TIMING));
        event.record(&stream).expect("an event can be recorded");
        event.synchronize().expect("an event can be synchronized");
        let gate = Gate::on(&stream);
        event
            .record(&stream)
            .expect("an event can be recorded again");
        assert!(!event.is_finished().expect("an event can be queried"));
        gate.open();
        stream.synchronize().expect("a stream can be synchronized");
    });
}

#[test]
fn time_between_events_is_that_of_the_work_between_them() {
    on_driver(|test| {
        let stream = test.stream();
        let (begin, end) = (
            event(test, EventFlags::empty()),
            event(test, EventFlags::BLOCKING_SYNC),
        );
        begin.record(&stream).expect("an event can be recorded");
        begin.synchronize().expect("an event can be synchronized");
        let gate = Gate::on(&stream);
        end.record(&stream).expect("an event can be recorded");
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(
            code(end.milliseconds_since(&begin)),
            Some(CUresult::CUDA_ERROR_NOT_READY)
        );
        gate.open();
        end.synchronize().expect("an event can be synchronized");
        let elapsed = end.elapsed_since(&begin).expect("both were executed");
        assert!(elapsed >= Duration::from_millis(19), "{elapsed:?}");
        assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
        assert!(begin.milliseconds_since(&end).expect("both were executed") < 0.0);
        assert_eq!(
            begin.elapsed_since(&end).expect("both were executed"),
            Duration::ZERO
        );
    });
}

#[test]
fn event_without_timing_has_no_time() {
    on_driver(|test| {
        let stream = test.stream();
        let (begin, end) = (
            event(test, EventFlags::DISABLE_TIMING),
            event(test, EventFlags::empty()),
        );
        begin.record(&stream).expect("an event can be recorded");
        end.record(&stream).expect("an event can be recorded");
        stream.synchronize().expect("a stream can be synchronized");
        assert_eq!(
            code(end.milliseconds_since(&begin)),
            Some(CUresult::CUDA_ERROR_INVALID_HANDLE)
        );
    });
}

#[test]
fn event_with_unknown_flags_is_an_error() {
    on_driver(|test| {
        let error = Event::new(&test.context(), EventFlags::from_bits_retain(0x100))
            .expect_err("there is no such flag");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert_eq!(error.function(), Some(Function::cuEventCreate));
    });
}

#[test]
fn event_is_not_recorded_on_a_stream_of_another_context() {
    on_simulator(Config::new().with_devices(2), |test, _| {
        let event = event(test, EventFlags::empty());
        let other = test
            .driver()
            .device(1)
            .and_then(|device| device.primary_context()?.stream());
        let other = other.expect("a stream can be created on the other device");
        let error = event
            .record(&other)
            .expect_err("the stream belongs to another context");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_HANDLE));
        let contexts = format!(
            "the event belongs to {:?}, and the stream to {:?}",
            test.context(),
            other.context()
        );
        assert_eq!(error.hint(), Some(&*contexts), "{error}");
        other
            .wait_event(&event)
            .expect("but a stream may wait for an event of any context");
    });
}

#[test]
fn time_between_events_of_different_contexts_is_an_error_that_names_both() {
    on_simulator(Config::new().with_devices(2), |test, _| {
        let stream = test
            .driver()
            .device(1)
            .and_then(|device| device.primary_context()?.stream());
        let stream = stream.expect("a stream can be created on the other device");
        let (own, other) = (
            event(test, EventFlags::empty()),
            Event::new(stream.context(), EventFlags::empty()),
        );
        let other = other.expect("an event can be created");
        own.record(&test.stream())
            .and_then(|()| own.synchronize())
            .expect("it belongs to this context");
        other
            .record(&stream)
            .and_then(|()| other.synchronize())
            .expect("it belongs to this context");
        let error = other
            .milliseconds_since(&own)
            .expect_err("the contexts differ");
        let contexts = format!(
            "the first event belongs to {:?}, and the second to {:?}",
            own.context(),
            other.context()
        );
        assert_eq!(error.hint(), Some(&*contexts), "{error}");
    });
}

#[test]
fn event_dropped_while_pending_is_destroyed_once() {
    on_driver(|test| {
        let (stream, event) = (test.stream(), event(test, EventFlags::empty()));
        let gate = Gate::on(&stream);
        event.record(&stream).expect("an event can be recorded");
        test.assert_calls(Function::cuEventDestroy_v2, 1, || drop(event));
        gate.open();
        test.assert_calls(Function::cuEventDestroy_v2, 0, || {
            stream
                .synchronize()
                .expect("the record completes without its event");
        });
    });
}

#[test]
fn stream_waits_for_an_event_that_is_dropped_meanwhile() {
    on_driver(|test| {
        let (first, second, event) = (
            test.stream(),
            test.stream(),
            event(test, EventFlags::DISABLE_TIMING),
        );
        let gate = Gate::on(&first);
        event.record(&first).expect("an event can be recorded");
        second.wait_event(&event).expect("a stream can wait");
        drop(event);
        assert!(
            stream_work::is_held_up(&second),
            "the wait ended with its event"
        );
        gate.open();
        second.synchronize().expect("a stream can be synchronized");
    });
}

#[test]
fn event_outlives_stream_and_context_handles() {
    on_driver(|test| {
        let event = {
            let context = test.context();
            let stream = context.stream().expect("a stream can be created");
            let event = Event::new(&context, EventFlags::empty()).expect("an event can be created");
            event.record(&stream).expect("an event can be recorded");
            event
        };
        event
            .synchronize()
            .expect("the event works without other handles");
        assert!(event.is_finished().expect("an event can be queried"));
        event
            .context()
            .synchronize()
            .expect("the event keeps its context");
    });
}

#[test]
fn closed_event_is_destroyed_once() {
    on_driver(|test| {
        let event = event(test, EventFlags::empty());
        test.assert_calls(Function::cuEventDestroy_v2, 1, || {
            event.close().expect("the driver destroys the event");
        });
    });
}

#[test]
fn event_that_the_driver_does_not_destroy_is_given_back_by_close() {
    on_simulator(Config::new(), |test, simulator| {
        let event = event(test, EventFlags::empty());
        simulator.inject(
            Fault::on(Function::cuEventDestroy_v2).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let (event, error) = event
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(Function::cuEventDestroy_v2));
        assert_eq!(simulator.live_handles().events, 1);
        event.synchronize().expect("the event is still there");
        drop(event);
        assert_eq!(simulator.live_handles().events, 0);
    });
}

#[test]
fn ownership_of_a_raw_event_is_taken_and_released() {
    on_driver(|test| {
        let (context, first) = (test.context(), event(test, EventFlags::DISABLE_TIMING));
        let raw = test.assert_calls(Function::cuEventDestroy_v2, 0, || {
            first.into_raw().expect("no future exists")
        });
        // SAFETY: the handle is live and has no other owner.
        let second = unsafe { Event::from_raw(&context, raw) };
        second
            .record_with_flags(&test.stream(), RecordFlags::empty())
            .expect("an event can be recorded");
        test.assert_calls(Function::cuEventDestroy_v2, 1, || drop(second));
    });
}

#[test]
fn unknown_record_flags_are_an_error() {
    on_driver(|test| {
        let flags = RecordFlags::from_bits_retain(0x80);
        let result =
            event(test, EventFlags::DISABLE_TIMING).record_with_flags(&test.stream(), flags);
        assert_eq!(code(result), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    });
}

#[test]
fn shared_event_has_a_handle_that_its_own_process_does_not_open() {
    on_driver(|test| {
        let context = test.context();
        let event = Event::new(
            &context,
            EventFlags::INTERPROCESS | EventFlags::DISABLE_TIMING,
        );
        let event = event.expect("an event can be shared");
        let handle = event.ipc_handle().expect("it has a handle");
        assert_eq!(handle, event.ipc_handle().expect("it is the same"));
        let copy = IpcEventHandle::from_bytes(handle.to_bytes());
        let error = Event::open_ipc(&context, copy).expect_err("the event belongs to this process");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    });
}

#[test]
fn handles_that_are_none_and_events_that_are_not_shared_are_errors() {
    on_simulator(Config::new(), |test, _| {
        let context = test.context();
        let event = Event::new(&context, EventFlags::empty()).expect("an event can be created");
        let error = event.ipc_handle().expect_err("it is not shared");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_HANDLE));
        let nothing = IpcEventHandle::from_bytes([0; IpcEventHandle::SIZE]);
        let error = Event::open_ipc(&context, nothing).expect_err("it is not a handle");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    });
}

#[test]
fn interprocess_event_with_timing_is_an_error_that_names_the_flag() {
    on_driver(|test| {
        let error = Event::new(&test.context(), EventFlags::INTERPROCESS)
            .expect_err("the event would record a time");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert!(
            error
                .to_string()
                .contains("requires `EventFlags::DISABLE_TIMING`"),
            "{error}"
        );
    });
}

#[test]
fn event_that_is_being_recorded_in_a_capture_is_not_waited_for_outside() {
    on_driver(|test| {
        let (event, outside) = (Arc::new(event(test, EventFlags::empty())), test.stream());
        let refused = Arc::new(Mutex::new(None));
        let action = {
            let used = Mutex::new(Some((Arc::clone(&event), outside.clone())));
            let refused = Arc::clone(&refused);
            move || {
                let used = used.lock().expect("no thread panics").take();
                let waited = used.map(|(event, outside)| outside.wait_event(&event));
                *refused.lock().expect("no thread panics") = waited;
            }
        };
        let graph = Graph::capture(&test.context(), |scope| {
            let guard = observe_calls(During::end_of(Function::cuEventRecord, action));
            event.record(scope)?;
            drop(guard);
            Ok::<(), Error>(())
        });
        graph.expect("no other stream has joined the capture");
        let refused = refused
            .lock()
            .expect("no thread panics")
            .take()
            .expect("the observer runs");
        let refused = refused.expect_err("the event is a point of the graph");
        assert!(
            refused.to_string().contains("is not being captured"),
            "{refused}"
        );
        event.record(&outside).expect("it can be recorded");
        outside
            .wait_event(&event)
            .expect("it is a point in time again");
    });
}

#[test]
fn event_whose_record_in_a_capture_fails_is_where_it_was() {
    on_simulator(Config::new(), |test, simulator| {
        let (event, outside) = (event(test, EventFlags::empty()), test.stream());
        event.record(&outside).expect("it can be recorded");
        let failed = Graph::capture(&test.context(), |scope| {
            simulator.inject(
                Fault::on(Function::cuEventRecord).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY),
            );
            event.record(scope)
        });
        failed.expect_err("the record fails");
        event.synchronize().expect("it is a point in time");
        outside.wait_event(&event).expect("it is a point in time");
    });
}

pub(crate) mod operations {
    use curium_driver::{Event, EventFlags, IpcEventHandle, RecordFlags, Result};

    use crate::operations::{Fixture, Operation, boxed, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
        ("Event::new", |fixture| {
            made(Event::new(&fixture.context, EventFlags::empty())?)
        }),
        ("Event::record", |fixture| {
            made(fixture.event.record(&fixture.other)?)
        }),
        ("Event::is_finished", |fixture| {
            made(fixture.event.is_finished()?)
        }),
        ("Event::synchronize", |fixture| {
            made(fixture.event.synchronize()?)
        }),
        ("Event::milliseconds_since", |fixture| {
            made(fixture.later.milliseconds_since(&fixture.event)?)
        }),
        ("Event::elapsed_since", |fixture| {
            made(fixture.later.elapsed_since(&fixture.event)?)
        }),
        ("Event::close", |fixture| {
            Event::new(&fixture.context, EventFlags::empty())?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("Event::record_with_flags", |fixture| {
            made(
                fixture
                    .event
                    .record_with_flags(&fixture.other, RecordFlags::empty())?,
            )
        }),
        ("Event::into_raw", |fixture| {
            let event = Event::new(&fixture.context, EventFlags::empty())?;
            let raw = event.into_raw()?;
            // SAFETY: the handle is live and has no other owner.
            made(unsafe { Event::from_raw(&fixture.context, raw) })
        }),
    ];

    pub(crate) const SOLITARY: &[Operation] = &[
        ("Event::ipc_handle", |fixture| {
            made(shared_event(fixture)?.ipc_handle()?)
        }),
        ("Event::open_ipc", |fixture| {
            let handle = IpcEventHandle::from_bytes([1; 64]);
            made(Event::open_ipc(&fixture.context, handle)?)
        }),
    ];

    fn shared_event(fixture: &Fixture) -> Result<Event> {
        Event::new(
            &fixture.context,
            EventFlags::INTERPROCESS | EventFlags::DISABLE_TIMING,
        )
    }
}
