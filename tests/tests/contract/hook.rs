//! [`observe_calls`] and [`observe_hazard_waits`]: observers of driver calls, and of inserted
//! waits.

use std::sync::Arc;
use std::thread;

use curium_driver::{
    Call, CallSpans, Function, HazardWait, Stream, observe_calls, observe_hazard_waits,
};
use curium_memory::DeviceBuffer;
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// An observer receives every call of an operation in order.
#[driver_test]
fn observer_receives_calls_in_order(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    // The first copy allocates a bounce buffer.
    DeviceBuffer::<u32>::zeroed(&stream, 4)?.to_vec()?;
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    let me = thread::current().id();
    let guard = observe_calls(move |call: &Call<'_>| {
        if thread::current().id() == me {
            seen.lock().push((call.function, call.code));
        }
    });
    let buffer = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
    assert_eq!(buffer.to_vec()?, [0; 4]);
    drop(guard);
    let expected = [
        Function::cuMemAllocAsync,
        Function::cuMemsetD8Async,
        Function::cuStreamIsCapturing,
        Function::cuMemcpyDtoHAsync_v2,
        Function::cuStreamSynchronize,
    ];
    let expected = expected.map(|function| (function, CUresult::CUDA_SUCCESS));
    assert_eq!(*calls.lock(), expected);
    Ok(())
}

/// An observer of hazard waits receives the streams, the size and the hazard, until its guard is
/// dropped.
#[driver_test]
fn hazard_waits_are_observed(test: &TestDriver) -> TestResult {
    let first = test.stream();
    let second = test.stream();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&first, 4)?;
    let waits = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&waits);
    let me = thread::current().id();
    let guard = observe_hazard_waits(move |wait: &HazardWait<'_>| {
        if thread::current().id() == me {
            let streams = [wait.waiting_stream, wait.stream].map(Stream::identity);
            seen.lock().push((streams, wait.bytes, wait.hazard));
        }
    });
    buffer.on_mut(&second).fill(1)?;
    drop(guard);
    buffer.on_mut(&first).fill(2)?;
    let expected = [second.identity(), first.identity()];
    assert_eq!(*waits.lock(), [(expected, 16, "WAW")]);
    Ok(())
}

/// Records spans as lines of text.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, line: String) {
        self.0.lock().push(line);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "curium::call"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line(span.metadata().name().to_owned());
        span.record(&mut line);
        self.add(line.0);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line("record".to_owned());
        values.record(&mut line);
        self.add(line.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {
        self.add("enter".to_owned());
    }

    fn exit(&self, _: &Id) {
        self.add("exit".to_owned());
    }
}

#[driver_test]
fn call_is_a_span_with_its_function_and_code(test: &TestDriver) -> TestResult {
    let spans_of_a_call = || {
        let notes = Notes::default();
        tracing::subscriber::with_default(notes.clone(), || {
            let _guard = observe_calls(CallSpans::new());
            test.device().total_memory().expect("a device has memory");
        });
        let lines = notes.0.lock().clone();
        let total = lines
            .iter()
            .position(|line| line == "cuda function=\"cuDeviceTotalMem_v2\"")?;
        Some(lines[total..].to_vec())
    };
    // `tracing` misses a span whose call site another thread registers at the same moment, until a
    // new subscriber is set.
    let lines = (0..10)
        .find_map(|_| spans_of_a_call())
        .ok_or("no span of the call")?;
    assert_eq!(
        lines,
        [
            "cuda function=\"cuDeviceTotalMem_v2\"",
            "enter",
            "record code=0",
            "exit"
        ]
    );
    Ok(())
}

/// Records the events of hazard tracking as lines of text.
#[derive(Clone, Default)]
struct Waits(Arc<Mutex<Vec<String>>>);

impl Subscriber for Waits {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "curium_driver::hazard"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A inserted wait is an event with the buffer both streams and the hazard.
#[driver_test]
fn inserted_wait_event_describes_the_hazard(test: &TestDriver) {
    let origin = test.stream();
    let other = test.stream();
    let events_of_a_round = || {
        let mut x = DeviceBuffer::from_slice(&origin, &[1_u32; 16]).expect("allocation failed");
        let mut y = DeviceBuffer::<u32>::zeroed(&other, 16).expect("allocation failed");
        let waits = Waits::default();
        tracing::subscriber::with_default(waits.clone(), || {
            y.on_mut(&other).copy_from_device(&x).expect("copy failed");
            x.on_mut(&origin).fill(2).expect("the owner may write");
            x.on_mut(&other).fill(3).expect("the owner may write");
        });
        let expected = [
            ("RAW", &other, &origin),
            ("WAR", &origin, &other),
            ("WAW", &other, &origin),
        ];
        let lines = waits.0.lock().clone();
        (lines, expected.map(|(hazard, waiting, stream): (&str, &Stream, &Stream)| {
            format!(
                "TRACE message=hazard wait address={:#x} bytes=64 waiting_stream={waiting:?} stream={stream:?} hazard={hazard}",
                x.as_pointer().as_raw()
            )
        }))
    };
    // As above: the first event of a call site may be missed.
    let rounds: Vec<_> = (0..10).map(|_| events_of_a_round()).collect();
    assert!(
        rounds.iter().any(|(lines, expected)| lines == expected),
        "{:#?}",
        rounds.last()
    );
}
