//! [`Stream`](curium_driver::Stream): order, synchronization and destruction.

use curium_driver::{Error, Event, EventFlags, Function, Stream, StreamFlags, StreamOptions};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{Gate, on_driver, on_simulator, stream_work};

#[test]
fn stream_without_work_is_finished() {
    on_driver(|test| {
        let stream = test.stream();
        assert!(stream.is_finished().expect("a stream can be queried"));
        stream.synchronize().expect("a stream can be synchronized");
    });
}

#[test]
fn stream_with_work_is_not_finished_until_the_work_is_done() {
    on_driver(|test| {
        let stream = test.stream();
        let gate = Gate::on(&stream);
        assert!(!stream.is_finished().expect("a stream can be queried"));
        gate.open();
        stream.synchronize().expect("a stream can be synchronized");
        assert!(stream.is_finished().expect("a stream can be queried"));
    });
}

#[test]
fn stream_waits_for_an_event_of_another() {
    on_driver(|test| {
        let context = test.context();
        let (first, second) = (test.stream(), test.stream());
        let event =
            Event::new(&context, EventFlags::DISABLE_TIMING).expect("an event can be created");
        let gate = Gate::on(&first);
        event.record(&first).expect("an event can be recorded");
        second.wait_event(&event).expect("a stream can wait");
        assert!(
            stream_work::is_held_up(&second),
            "the second stream did not wait"
        );
        gate.open();
        second.synchronize().expect("a stream can be synchronized");
        assert!(event.is_finished().expect("an event can be queried"));
    });
}

#[test]
fn stream_waits_for_the_record_at_the_time_of_the_wait() {
    on_driver(|test| {
        let context = test.context();
        let (first, second) = (test.stream(), test.stream());
        let event =
            Event::new(&context, EventFlags::DISABLE_TIMING).expect("an event can be created");
        event.record(&first).expect("an event can be recorded");
        second.wait_event(&event).expect("a stream can wait");
        let gate = Gate::on(&first);
        event
            .record(&first)
            .expect("an event can be recorded again");
        second
            .synchronize()
            .expect("a later record does not affect earlier waits");
        gate.open();
    });
}

#[test]
fn stream_does_not_wait_for_an_event_that_was_never_recorded() {
    on_driver(|test| {
        let stream = test.stream();
        let event =
            Event::new(stream.context(), EventFlags::empty()).expect("an event can be created");
        stream.wait_event(&event).expect("a stream can wait");
        stream.synchronize().expect("there is nothing to wait for");
    });
}

#[test]
fn stream_runs_its_work_in_order() {
    on_driver(|test| {
        let stream = test.stream();
        let mut buffer = DeviceBuffer::<u32>::zeroed(&stream, 1000).expect("memory suffices");
        let gate = Gate::on(&stream);
        for value in 0..32 {
            stream_work::fill(&stream, &mut buffer, value).expect("the buffer can be filled");
        }
        gate.open();
        assert_eq!(buffer.to_vec().expect("the buffer can be read"), [31; 1000]);
    });
}

#[test]
fn stream_priority_out_of_range_is_clamped() {
    on_driver(|test| {
        let context = test.context();
        for priority in [i32::MIN, -1, 0, 1, i32::MAX] {
            let stream = Stream::new(&context, StreamOptions::new().with_priority(priority));
            stream
                .expect("any priority is valid")
                .synchronize()
                .expect("the stream works");
        }
    });
}

#[test]
fn stream_with_unknown_flags_is_an_error() {
    on_driver(|test| {
        let options = StreamOptions::new().with_flags(StreamFlags::from_bits_retain(0x100));
        let error = Stream::new(&test.context(), options).expect_err("there is no such flag");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert_eq!(error.function(), Some(Function::cuStreamCreateWithPriority));
    });
}

#[test]
fn stream_that_blocks_is_a_stream() {
    on_driver(|test| {
        let options = StreamOptions::default().with_flags(StreamFlags::empty());
        let stream = Stream::new(&test.context(), options).expect("a stream can be created");
        assert_ne!(stream, test.stream());
        assert_eq!(stream, stream.clone());
        stream.synchronize().expect("the stream works");
    });
}

#[test]
fn stream_in_use_is_given_back_by_close() {
    on_driver(|test| {
        let stream = test.stream();
        let buffer = DeviceBuffer::<u8>::zeroed(&stream, 16).expect("memory suffices");
        let (stream, error) = stream
            .close()
            .expect_err("the buffer keeps the stream")
            .into_parts();
        assert!(matches!(error, Error::Argument(_)), "{error}");
        drop(buffer);
        stream.close().expect("nothing keeps the stream any more");
    });
}

#[test]
fn stream_that_the_driver_does_not_destroy_is_given_back_by_close() {
    on_simulator(Config::new(), |test, simulator| {
        let stream = test.stream();
        simulator.inject(
            Fault::on(Function::cuStreamDestroy_v2).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let (stream, error) = stream
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(Function::cuStreamDestroy_v2));
        stream.synchronize().expect("the stream is still there");
        stream.close().expect("only the first call failed");
        assert_eq!(simulator.calls(Function::cuStreamDestroy_v2), 2);
    });
}

#[test]
fn work_on_a_dropped_stream_completes() {
    on_driver(|test| {
        let context = test.context();
        let event =
            Event::new(&context, EventFlags::DISABLE_TIMING).expect("an event can be created");
        let stream = test.stream();
        let gate = Gate::on(&stream);
        event.record(&stream).expect("an event can be recorded");
        drop(stream);
        assert!(!event.is_finished().expect("an event can be queried"));
        gate.open();
        event
            .synchronize()
            .expect("the work completes without its stream");
    });
}

#[test]
fn stream_keeps_its_context_and_driver() {
    on_driver(|test| {
        let stream = test
            .driver()
            .device(0)
            .and_then(|device| device.primary_context()?.stream());
        let stream = stream.expect("a stream can be created");
        stream
            .context()
            .synchronize()
            .expect("the context lives as long as the stream");
        assert!(!stream.as_raw().is_null());
        assert_eq!(stream.driver().version(), test.driver().version());
    });
}

pub(crate) mod operations {
    use curium_driver::{AttachMode, DevicePointer, Stream, StreamOptions};

    use crate::operations::{Operation, boxed, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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

    pub(crate) const SOLITARY: &[Operation] = &[("Stream::attach_managed", |fixture| {
        let address = DevicePointer::from_raw(fixture.value_address().as_raw());
        // SAFETY: no work uses the values.
        made(unsafe {
            fixture
                .stream
                .attach_managed(address, 0, AttachMode::Global)
        }?)
    })];
}
