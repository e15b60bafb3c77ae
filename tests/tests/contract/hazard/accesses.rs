//! The contract between memory owners and hazard tracking, without memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use curium_driver::hazard::Accesses;
use curium_driver::{Error, Function, Graph, Stream, observe_calls};
use curium_tests::{During, Gate, TestDriver, TestResult, driver_test, resume_panic};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::streams;

fn read(accesses: &Accesses, stream: &Stream) -> Result<(), Error> {
    let mut operation = stream.enqueue("test")?;
    accesses.before_read(&mut operation)?;
    accesses.after_read(&mut operation);
    Ok(())
}

fn write(accesses: &Accesses, stream: &Stream) -> Result<(), Error> {
    let mut operation = stream.enqueue("test")?;
    accesses.before_write(&mut operation)?;
    accesses.after_partial_write(&mut operation);
    Ok(())
}

/// Returns a graph that leases the memory for writing.
fn writer(test: &TestDriver, accesses: &Accesses) -> Graph {
    Graph::capture(&test.context(), |scope| write(accesses, scope)).expect("capture failed")
}

/// Returns whether a read and a write on this stream are begun without a lock.
fn begins_at_home(accesses: &Accesses, stream: &Stream) -> [bool; 2] {
    [false, true].map(|is_write| {
        let mut operation = stream
            .enqueue("test")
            .expect("the stream belongs to no capture");
        accesses.begin_on_owner_stream(&mut operation, is_write)
    })
}

/// Access that the graph would miss is refused before a wait.
#[driver_test]
fn uncaptured_access_is_refused_before_a_wait(test: &TestDriver) -> TestResult {
    let [own, other] = streams(test);
    let at_home = Accesses::leasable(&own);
    let elsewhere = Accesses::leasable(&other);
    Graph::capture(&test.context(), |_scope| {
        for accesses in [&at_home, &elsewhere] {
            for refused in [read(accesses, &own), write(accesses, &own)] {
                let error = refused.expect_err("the work would run immediately");
                assert!(
                    error.function().is_none()
                        && error.to_string().contains("not part of that capture"),
                    "{error}"
                );
            }
        }
        Ok::<_, Error>(())
    })?;
    assert_eq!(own.inserted_waits(), 0);
    write(&elsewhere, &own)?;
    assert_eq!(own.inserted_waits(), 1);
    Ok(())
}

/// Reads on the home stream take no lock after it has waited for a launch on another stream.
#[driver_test]
fn origin_stream_reads_lock_free_after_a_wait(test: &TestDriver) -> TestResult {
    let [own, launching, reading] = streams(test);
    let accesses = Accesses::leasable(&own);
    let mut graph = writer(test, &accesses).instantiate()?;
    write(&accesses, &own)?;
    assert_eq!(
        begins_at_home(&accesses, &own),
        [true, true],
        "no executable holds the memory"
    );
    graph.launch(&launching)?;
    assert_eq!(
        begins_at_home(&accesses, &own),
        [false, false],
        "the launch has not been waited for"
    );
    read(&accesses, &own)?;
    assert_eq!(
        (own.inserted_waits(), begins_at_home(&accesses, &own)),
        (1, [true, false])
    );
    // A second reader waits for the launch, but not for the reads on the home stream.
    read(&accesses, &reading)?;
    let home = own.inserted_waits();
    write(&accesses, &own)?;
    assert_eq!(
        own.inserted_waits(),
        home + 1,
        "the read on the other stream"
    );
    assert_eq!(begins_at_home(&accesses, &own), [true, true]);
    graph.launch(&launching)?;
    assert_eq!(begins_at_home(&accesses, &own), [false, false]);
    Ok(())
}

/// Reads on the home stream take no lock while an executable reads.
#[driver_test]
fn origin_stream_reads_lock_free_during_launches(test: &TestDriver) -> TestResult {
    let [own, launching] = streams(test);
    let accesses = Accesses::leasable(&own);
    let graph = Graph::capture(&test.context(), |scope| read(&accesses, scope))?;
    let mut graph = graph.instantiate()?;
    graph.launch(&launching)?;
    assert_eq!(begins_at_home(&accesses, &own), [true, false]);
    read(&accesses, &own)?;
    write(&accesses, &own)?;
    assert_eq!(own.inserted_waits(), 1, "the write waits for the launch");
    Ok(())
}

/// An operation that declares late that it may block remains registered until it ends.
#[driver_test]
fn late_blocking_operation_ends(test: &TestDriver) -> TestResult {
    let [own, launching] = streams(test);
    let accesses = Accesses::leasable(&own);
    let mut graph = writer(test, &accesses).instantiate()?;
    write(&accesses, &own)?;
    let mut operation = own.enqueue("test")?;
    assert!(accesses.begin_on_owner_stream(&mut operation, true));
    drop(operation.blocking());
    // Nothing waits for the operation, and this thread holds nothing.
    graph.launch(&launching)?;
    Ok(())
}

/// The host waits for all writes even if a capture leases the memory while the wait begins.
#[driver_test]
fn host_wait_during_the_first_lease(test: &TestDriver) -> TestResult {
    const PAUSE: Duration = Duration::from_millis(50);
    let [own, writing, reading] = streams(test);
    let accesses = &Accesses::leasable(&own);
    let gate = Gate::on(&writing);
    write(accesses, &writing)?;
    let (start_capture, capture_starts) = mpsc::channel();
    let (start_wait, wait_starts) = mpsc::channel();
    // Orders the read while the capture, and then the host's wait, need the same history.
    let observer = observe_calls(During::call_of(Function::cuEventRecord, move || {
        let _ = start_capture.send(());
        thread::sleep(PAUSE);
        let _ = start_wait.send(());
        thread::sleep(PAUSE);
    }));
    thread::scope(|scope| -> TestResult {
        let capture = scope.spawn(move || -> TestResult<_> {
            capture_starts.recv()?;
            Ok(writer(test, accesses))
        });
        let written = &writing;
        let wait = scope.spawn(move || -> TestResult<_> {
            wait_starts.recv()?;
            accesses.synchronize_writes()?;
            Ok(written.is_finished()?)
        });
        read(accesses, &reading)?;
        thread::sleep(PAUSE);
        gate.open();
        let _graph = resume_panic(capture.join())?;
        let is_finished = resume_panic(wait.join())?;
        assert!(is_finished, "the write was not waited for");
        Ok(())
    })?;
    drop(observer);
    Ok(())
}

/// A subscriber that panics at each inserted wait, and counts its panics.
struct Panicking(Arc<AtomicUsize>);

impl Subscriber for Panicking {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "curium_driver::hazard"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("this panic is part of the test")
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Makes a subscriber panic while a write waits. Returns `true` if it panicked.
fn panics_in_a_wait(test: &TestDriver, is_leased: bool) -> curium_driver::Result<bool> {
    let [own, reading, writing] = streams(test);
    let accesses = Accesses::leasable(&own);
    let graph = is_leased.then(|| writer(test, &accesses));
    read(&accesses, &reading)?;
    let panics = Arc::new(AtomicUsize::new(0));
    // The subscriber panics, and the write succeeds.
    tracing::subscriber::with_default(Panicking(Arc::clone(&panics)), || {
        write(&accesses, &writing)
    })?;
    write(&accesses, &writing)?;
    assert_eq!(
        writing.inserted_waits(),
        2,
        "it waits for the allocation and for the read"
    );
    if let Some(graph) = graph {
        graph.instantiate()?.launch(&own)?;
        assert_eq!(
            own.inserted_waits(),
            1,
            "the launch waits for the write, which comes after the read"
        );
    }
    Ok(panics.load(Ordering::Relaxed) > 0)
}

/// A subscriber that panics at an inserted wait neither ends the access nor hides it from later
/// ones.
#[driver_test]
fn subscriber_panic_is_contained_by_the_wait(test: &TestDriver) {
    for is_leased in [false, true] {
        // `tracing` misses the first event of a call site that another thread registers at the same
        // time.
        let has_panicked = (0..10)
            .any(|_| panics_in_a_wait(test, is_leased).expect("the panic ends in the subscriber"));
        assert!(has_panicked, "no subscriber has panicked");
    }
}

pub(crate) mod operations {
    use curium_driver::hazard::Accesses;
    use curium_tests::begin;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        (
            "Accesses::before_read and Accesses::after_read",
            |fixture| {
                let accesses = Accesses::allocated(&fixture.stream);
                let mut operation = begin(&fixture.other);
                accesses.before_read(&mut operation)?;
                accesses.after_read(&mut operation);
                made(())
            },
        ),
        (
            "Accesses::before_write and Accesses::after_partial_write",
            |fixture| {
                let accesses = Accesses::allocated(&fixture.stream);
                accesses.before_read(&mut begin(&fixture.other))?;
                accesses.after_read(&mut begin(&fixture.other));
                let mut operation = begin(&fixture.stream);
                accesses.before_write(&mut operation)?;
                accesses.after_partial_write(&mut operation);
                made(())
            },
        ),
        (
            "Accesses::after_write and Accesses::before_free",
            |fixture| {
                let mut accesses = Accesses::allocated(&fixture.stream);
                let mut operation = begin(&fixture.other);
                accesses.before_write(&mut operation)?;
                accesses.after_write(&mut operation);
                made(accesses.before_free(&fixture.stream)?)
            },
        ),
        (
            "Accesses::synchronize and Accesses::synchronize_writes",
            |fixture| {
                let accesses = Accesses::allocated(&fixture.stream);
                accesses.after_read(&mut begin(&fixture.other));
                accesses.synchronize_writes()?;
                accesses.synchronize()?;
                made(())
            },
        ),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
