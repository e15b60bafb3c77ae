//! [`Event`]: recording, timing and destruction.

use std::sync::Arc;
use std::time::Duration;

use curium_driver::{
    Error, Event, EventFlags, Function, Graph, RecordFlags, Result, observe_calls,
};
use curium_interop::IpcEventHandle;
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    During, Gate, TestDriver, TestResult, driver_test, simulator_test, stream_work,
};
use parking_lot::Mutex;

fn event(test: &TestDriver, flags: EventFlags) -> TestResult<Event> {
    Ok(Event::new(&test.context(), flags)?)
}

fn code<T>(result: Result<T>) -> Option<CUresult> {
    result.err().and_then(|error| error.code())
}

/// An event never recorded counts as finished but has no time.
#[driver_test]
fn unrecorded_event_is_finished_but_untimed(test: &TestDriver) -> TestResult {
    let begin = event(test, EventFlags::empty())?;
    let end = event(test, EventFlags::empty())?;
    assert!(begin.is_finished()?);
    begin.synchronize()?;
    assert_eq!(
        code(end.milliseconds_since(&begin)),
        Some(CUresult::CUDA_ERROR_INVALID_HANDLE)
    );
    Ok(())
}

#[driver_test]
fn event_is_finished_when_the_work_before_it_is_done(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let event = event(test, EventFlags::empty())?;
    let gate = Gate::on(&stream);
    event.record(&stream)?;
    assert!(!event.is_finished()?);
    gate.open();
    event.synchronize()?;
    assert!(event.is_finished()?);
    Ok(())
}

#[driver_test]
fn event_recorded_again_marks_the_later_point(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let event = event(test, EventFlags::DISABLE_TIMING)?;
    event.record(&stream)?;
    event.synchronize()?;
    let gate = Gate::on(&stream);
    event.record(&stream)?;
    assert!(!event.is_finished()?);
    gate.open();
    stream.synchronize()?;
    Ok(())
}

/// Time between events is that of the work between them.
#[driver_test]
fn elapsed_time_measures_the_work_between(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let begin = event(test, EventFlags::empty())?;
    let end = event(test, EventFlags::BLOCKING_SYNC)?;
    begin.record(&stream)?;
    begin.synchronize()?;
    let gate = Gate::on(&stream);
    end.record(&stream)?;
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(
        code(end.milliseconds_since(&begin)),
        Some(CUresult::CUDA_ERROR_NOT_READY)
    );
    gate.open();
    end.synchronize()?;
    let elapsed = end.elapsed_since(&begin)?;
    assert!(elapsed >= Duration::from_millis(19), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
    assert!(begin.milliseconds_since(&end)? < 0.0);
    assert_eq!(begin.elapsed_since(&end)?, Duration::ZERO);
    Ok(())
}

#[driver_test]
fn event_without_timing_has_no_time(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let begin = event(test, EventFlags::DISABLE_TIMING)?;
    let end = event(test, EventFlags::empty())?;
    begin.record(&stream)?;
    end.record(&stream)?;
    stream.synchronize()?;
    assert_eq!(
        code(end.milliseconds_since(&begin)),
        Some(CUresult::CUDA_ERROR_INVALID_HANDLE)
    );
    Ok(())
}

#[driver_test]
fn event_with_unknown_flags_is_an_error(test: &TestDriver) {
    let error = Event::new(&test.context(), EventFlags::from_bits_retain(0x100))
        .expect_err("there is no such flag");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert_eq!(error.function(), Some(Function::cuEventCreate));
}

/// An event is not recorded on a stream of another context.
#[simulator_test(Config::new().with_devices(2))]
fn event_requires_a_stream_in_its_context(test: &TestDriver, _: &Simulator) -> TestResult {
    let event = event(test, EventFlags::empty())?;
    let other = test
        .driver()
        .device(1)
        .and_then(|device| device.primary_context()?.stream())?;
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
    other.wait_event(&event)?;
    Ok(())
}

/// Time between events of different contexts is an error that names both.
#[simulator_test(Config::new().with_devices(2))]
fn elapsed_time_across_contexts_names_both(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test
        .driver()
        .device(1)
        .and_then(|device| device.primary_context()?.stream())?;
    let local = event(test, EventFlags::empty())?;
    let other = Event::new(stream.context(), EventFlags::empty())?;
    local
        .record(&test.stream())
        .and_then(|()| local.synchronize())?;
    other.record(&stream).and_then(|()| other.synchronize())?;
    let error = other
        .milliseconds_since(&local)
        .expect_err("the contexts differ");
    let contexts = format!(
        "the first event belongs to {:?}, and the second to {:?}",
        local.context(),
        other.context()
    );
    assert_eq!(error.hint(), Some(&*contexts), "{error}");
    Ok(())
}

#[driver_test]
fn event_dropped_while_pending_is_destroyed_once(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let event = event(test, EventFlags::empty())?;
    let gate = Gate::on(&stream);
    event.record(&stream)?;
    test.assert_calls(Function::cuEventDestroy_v2, 1, || drop(event));
    gate.open();
    test.assert_calls(Function::cuEventDestroy_v2, 0, || -> TestResult<_> {
        stream.synchronize()?;
        Ok(())
    })?;
    Ok(())
}

/// A stream waits for an event that is dropped meanwhile.
#[driver_test]
fn stream_waits_for_a_dropped_event(test: &TestDriver) -> TestResult {
    let first = test.stream();
    let second = test.stream();
    let event = event(test, EventFlags::DISABLE_TIMING)?;
    let gate = Gate::on(&first);
    event.record(&first)?;
    second.wait_event(&event)?;
    drop(event);
    assert!(
        stream_work::is_held_up(&second),
        "the wait ended with its event"
    );
    gate.open();
    second.synchronize()?;
    Ok(())
}

#[driver_test]
fn event_outlives_stream_and_context_handles(test: &TestDriver) -> TestResult {
    let event = {
        let context = test.context();
        let stream = context.stream()?;
        let event = Event::new(&context, EventFlags::empty())?;
        event.record(&stream)?;
        event
    };
    event.synchronize()?;
    assert!(event.is_finished()?);
    event.context().synchronize()?;
    Ok(())
}

#[driver_test]
fn closed_event_is_destroyed_once(test: &TestDriver) -> TestResult {
    let event = event(test, EventFlags::empty())?;
    test.assert_calls(Function::cuEventDestroy_v2, 1, || -> TestResult<_> {
        event.close()?;
        Ok(())
    })?;
    Ok(())
}

/// An event that the driver does not destroy is returned by close.
#[simulator_test]
fn close_returns_an_undestroyed_event(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let event = event(test, EventFlags::empty())?;
    simulator.inject(
        Fault::on(Function::cuEventDestroy_v2).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let (event, error) = event
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuEventDestroy_v2));
    assert_eq!(simulator.live_handles().events, 1);
    event.synchronize()?;
    drop(event);
    assert_eq!(simulator.live_handles().events, 0);
    Ok(())
}

#[driver_test]
fn raw_event_ownership_is_transferred(test: &TestDriver) -> TestResult {
    let context = test.context();
    let first = event(test, EventFlags::DISABLE_TIMING)?;
    let raw = test.assert_calls(Function::cuEventDestroy_v2, 0, || -> TestResult<_> {
        Ok(first.into_raw()?)
    })?;
    // SAFETY: the handle is live and has no other owner.
    let second = unsafe { Event::from_raw(&context, raw) };
    second.record_with_flags(&test.stream(), RecordFlags::empty())?;
    test.assert_calls(Function::cuEventDestroy_v2, 1, || drop(second));
    Ok(())
}

#[driver_test]
fn unknown_record_flags_are_an_error(test: &TestDriver) -> TestResult {
    let flags = RecordFlags::from_bits_retain(0x80);
    let result = event(test, EventFlags::DISABLE_TIMING)?.record_with_flags(&test.stream(), flags);
    assert_eq!(code(result), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    Ok(())
}

/// A shared event has a handle that its own process does not open.
#[driver_test]
fn own_process_does_not_open_its_ipc_event(test: &TestDriver) -> TestResult {
    let context = test.context();
    let event = Event::new(
        &context,
        EventFlags::INTERPROCESS | EventFlags::DISABLE_TIMING,
    )?;
    let handle = IpcEventHandle::from_event(&event)?;
    assert_eq!(handle, IpcEventHandle::from_event(&event)?);
    let copy = IpcEventHandle::from_bytes(handle.to_bytes());
    let error = copy
        .open(&context)
        .expect_err("the event belongs to this process");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    Ok(())
}

/// Handles that are none and events that are not shared are errors.
#[simulator_test]
fn invalid_ipc_handles_and_events_are_errors(test: &TestDriver, _: &Simulator) -> TestResult {
    let context = test.context();
    let event = Event::new(&context, EventFlags::empty())?;
    let error = IpcEventHandle::from_event(&event).expect_err("it is not shared");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_HANDLE));
    let nothing = IpcEventHandle::from_bytes([0; IpcEventHandle::SIZE]);
    let error = nothing.open(&context).expect_err("it is not a handle");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_MAP_FAILED));
    Ok(())
}

/// Interprocess event with timing is an error that names the flag.
#[driver_test]
fn interprocess_event_with_timing_names_the_flag(test: &TestDriver) {
    let error = Event::new(&test.context(), EventFlags::INTERPROCESS)
        .expect_err("the event would record a time");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert!(
        error
            .to_string()
            .contains("requires `EventFlags::DISABLE_TIMING`"),
        "{error}"
    );
}

/// An event that is being recorded in a capture is not waited for outside.
#[driver_test]
fn captured_event_is_not_waited_for_outside(test: &TestDriver) -> TestResult {
    let event = Arc::new(event(test, EventFlags::empty())?);
    let outside = test.stream();
    let refused = Arc::new(Mutex::new(None));
    let action = {
        let used = Mutex::new(Some((Arc::clone(&event), outside.clone())));
        let refused = Arc::clone(&refused);
        move || {
            let used = used.lock().take();
            let waited = used.map(|(event, outside)| outside.wait_event(&event));
            *refused.lock() = waited;
        }
    };
    let graph = Graph::capture(&test.context(), |scope| {
        let guard = observe_calls(During::end_of(Function::cuEventRecord, action));
        event.record(scope)?;
        drop(guard);
        Ok::<(), Error>(())
    });
    graph?;
    let refused = refused.lock().take().ok_or("the observer was not called")?;
    let refused = refused.expect_err("the event is a point of the graph");
    assert!(
        refused.to_string().contains("not part of that capture"),
        "{refused}"
    );
    event.record(&outside)?;
    outside.wait_event(&event)?;
    Ok(())
}

/// An event whose record in a capture fails is where it was.
#[simulator_test]
fn failed_captured_record_keeps_the_event(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let event = event(test, EventFlags::empty())?;
    let outside = test.stream();
    event.record(&outside)?;
    let failed = Graph::capture(&test.context(), |scope| {
        simulator.inject(
            Fault::on(Function::cuEventRecord).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY),
        );
        event.record(scope)
    });
    failed.expect_err("the record fails");
    event.synchronize()?;
    outside.wait_event(&event)?;
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{Event, EventFlags, RecordFlags, Result};
    use curium_interop::IpcEventHandle;

    use crate::operations::{Fixture, Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
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

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("IpcEventHandle::from_event", |fixture| {
            made(IpcEventHandle::from_event(&shared_event(fixture)?)?)
        }),
        ("IpcEventHandle::open", |fixture| {
            let handle = IpcEventHandle::from_bytes([1; 64]);
            made(handle.open(&fixture.context)?)
        }),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }

    fn shared_event(fixture: &Fixture) -> Result<Event> {
        Event::new(
            &fixture.context,
            EventFlags::INTERPROCESS | EventFlags::DISABLE_TIMING,
        )
    }
}
