//! [`Stream`](curium_driver::Stream): order, synchronization and destruction.

use curium_driver::AsRawStream as _;
use curium_driver::{Error, Event, EventFlags, Function, Stream, StreamFlags, StreamOptions};
use curium_memory::DeviceBuffer;
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, simulator_test, stream_work};

#[driver_test]
fn stream_without_work_is_finished(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    assert!(stream.is_finished()?);
    stream.synchronize()?;
    Ok(())
}

/// A stream with work is not finished until the work is done.
#[driver_test]
fn stream_is_finished_when_its_work_is_done(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let gate = Gate::on(&stream);
    assert!(!stream.is_finished()?);
    gate.open();
    stream.synchronize()?;
    assert!(stream.is_finished()?);
    Ok(())
}

#[driver_test]
fn stream_waits_for_another_streams_event(test: &TestDriver) -> TestResult {
    let context = test.context();
    let first = test.stream();
    let second = test.stream();
    let event = Event::new(&context, EventFlags::DISABLE_TIMING)?;
    let gate = Gate::on(&first);
    event.record(&first)?;
    second.wait_event(&event)?;
    assert!(
        stream_work::is_held_up(&second),
        "the second stream did not wait"
    );
    gate.open();
    second.synchronize()?;
    assert!(event.is_finished()?);
    Ok(())
}

/// A stream waits for the record at the time of the wait.
#[driver_test]
fn stream_waits_for_the_latest_record(test: &TestDriver) -> TestResult {
    let context = test.context();
    let first = test.stream();
    let second = test.stream();
    let event = Event::new(&context, EventFlags::DISABLE_TIMING)?;
    event.record(&first)?;
    second.wait_event(&event)?;
    let gate = Gate::on(&first);
    event.record(&first)?;
    second.synchronize()?;
    gate.open();
    Ok(())
}

/// A stream does not wait for an event that was never recorded.
#[driver_test]
fn stream_ignores_an_unrecorded_event(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let event = Event::new(stream.context(), EventFlags::empty())?;
    stream.wait_event(&event)?;
    stream.synchronize()?;
    Ok(())
}

#[driver_test]
fn stream_runs_its_work_in_order(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 1000)?;
    let gate = Gate::on(&stream);
    for value in 0..32 {
        stream_work::fill(&stream, &mut buffer, value)?;
    }
    gate.open();
    assert_eq!(buffer.to_vec()?, [31; 1000]);
    Ok(())
}

#[driver_test]
fn invalid_stream_priority_is_clamped(test: &TestDriver) -> TestResult {
    let context = test.context();
    for priority in [i32::MIN, -1, 0, 1, i32::MAX] {
        let stream = Stream::new(&context, StreamOptions::new().with_priority(priority));
        stream?.synchronize()?;
    }
    Ok(())
}

#[driver_test]
fn stream_with_unknown_flags_is_an_error(test: &TestDriver) {
    let options = StreamOptions::new().with_flags(StreamFlags::from_bits_retain(0x100));
    let error = Stream::new(&test.context(), options).expect_err("there is no such flag");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert_eq!(error.function(), Some(Function::cuStreamCreateWithPriority));
}

#[driver_test]
fn stream_that_blocks_is_a_stream(test: &TestDriver) -> TestResult {
    let options = StreamOptions::default().with_flags(StreamFlags::empty());
    let stream = Stream::new(&test.context(), options)?;
    assert_ne!(stream, test.stream());
    assert_eq!(stream, stream.clone());
    stream.synchronize()?;
    Ok(())
}

#[driver_test]
fn stream_in_use_is_given_back_by_close(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let buffer = DeviceBuffer::<u8>::zeroed(&stream, 16)?;
    let (stream, error) = stream
        .close()
        .expect_err("the buffer keeps the stream")
        .into_parts();
    assert!(matches!(error, Error::Argument(_)), "{error}");
    drop(buffer);
    stream.close()?;
    Ok(())
}

/// A stream that the driver does not destroy is returned by close.
#[simulator_test]
fn close_returns_an_undestroyed_stream(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    simulator.inject(
        Fault::on(Function::cuStreamDestroy_v2).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let (stream, error) = stream
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuStreamDestroy_v2));
    stream.synchronize()?;
    stream.close()?;
    assert_eq!(simulator.calls(Function::cuStreamDestroy_v2), 2);
    Ok(())
}

#[driver_test]
fn work_on_a_dropped_stream_completes(test: &TestDriver) -> TestResult {
    let context = test.context();
    let event = Event::new(&context, EventFlags::DISABLE_TIMING)?;
    let stream = test.stream();
    let gate = Gate::on(&stream);
    event.record(&stream)?;
    drop(stream);
    assert!(!event.is_finished()?);
    gate.open();
    event.synchronize()?;
    Ok(())
}

#[driver_test]
fn stream_keeps_its_context_and_driver(test: &TestDriver) -> TestResult {
    let stream = test
        .driver()
        .device(0)
        .and_then(|device| device.primary_context()?.stream())?;
    stream.context().synchronize()?;
    assert!(!stream.as_raw().is_null());
    assert_eq!(stream.driver().version(), test.driver().version());
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{AttachMode, DevicePointer, Stream, StreamOptions};

    use crate::operations::{Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Stream::new", |fixture| {
            made(Stream::new(&fixture.context, StreamOptions::new())?)
        }),
        ("Stream::synchronize", |fixture| {
            made(fixture.stream.synchronize()?)
        }),
        ("Stream::is_finished", |fixture| {
            made(fixture.stream.is_finished()?)
        }),
        ("Stream::wait_event", |fixture| {
            made(fixture.other.wait_event(&fixture.event)?)
        }),
        ("Stream::close", |fixture| {
            fixture
                .context
                .stream()?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[("Stream::attach_managed", |fixture| {
        let address = DevicePointer::from_raw(fixture.value_address().as_raw());
        // SAFETY: no work uses the values.
        made(unsafe {
            fixture
                .stream
                .attach_managed(address, 0, AttachMode::Global)
        }?)
    })];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
