//! Resource adaptors: statistics, limits, leak tracking and logging.

use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak, mpsc};

use curium_diagnostics::{AllocationLog, AllocationRecorder, EventKind};
use curium_driver::{DevicePointer, Error, Stream, set_drop_observer};
use curium_memory::{
    DeviceBox, DeviceBuffer, FailureCallback, LeakTracker, LimitedResource, Reclaiming, Resource,
    Statistics, StreamOrdered,
};
use curium_sim::{Fault, Simulator};
use curium_sys::{CUresult, Function};
use curium_tests::{TestDriver, TestResult, driver_test, resume_panic, simulator_test};
use parking_lot::Mutex;

const OUT_OF_MEMORY: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

fn free(resource: &impl Resource, stream: &Stream, pointer: DevicePointer<u8>, bytes: usize) {
    // SAFETY: the tests pass memory of this resource that is not in use.
    unsafe { resource.deallocate(stream, pointer, bytes, 256) }.expect("deallocation failed");
}

#[driver_test]
fn limit_rejects_allocations_beyond_it_with_the_sizes(test: &TestDriver) -> TestResult {
    let resource = LimitedResource::new(StreamOrdered, 1000);
    let stream = test.stream();
    let first = resource.allocate(&stream, 600, 256)?;
    let error = resource
        .allocate(&stream, 401, 256)
        .expect_err("the limit is reached");
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!(
        (error.code(), error.function()),
        (None, None),
        "the driver was not called"
    );
    assert_eq!(
        error.to_string(),
        "resource: allocation refused (401 bytes, 600 of 1000 bytes of the limit in use)"
    );
    let second = resource.allocate(&stream, 400, 256)?;
    assert_eq!((resource.used(), resource.limit()), (1000, 1000));
    free(&resource, &stream, first, 600);
    free(&resource, &stream, second, 400);
    assert_eq!(resource.used(), 0);
    Ok(())
}

#[simulator_test]
fn limit_counts_no_allocation_that_failed(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let resource = LimitedResource::new(StreamOrdered, 1000);
    let stream = test.stream();
    simulator.inject(Fault::on(Function::cuMemAllocAsync).returns(OUT_OF_MEMORY));
    resource
        .allocate(&stream, 600, 256)
        .expect_err("the injected fault occurs");
    assert_eq!(resource.used(), 0);
    let pointer = resource.allocate(&stream, 600, 256)?;
    simulator
        .inject(Fault::on(Function::cuMemFreeAsync).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY));
    // SAFETY: the memory was allocated from this resource with this size and alignment, and is not
    // in use.
    unsafe { resource.deallocate(&stream, pointer, 600, 256) }
        .expect_err("the injected fault occurs");
    assert_eq!(resource.used(), 600, "the memory is still in use");
    free(&resource, &stream, pointer, 600);
    Ok(())
}

#[simulator_test]
fn statistics_count_the_use_and_its_maximum(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let resource = Statistics::new(StreamOrdered);
    let stream = test.stream();
    let first = resource.allocate(&stream, 100, 256)?;
    let second = resource.allocate(&stream, 200, 256)?;
    free(&resource, &stream, first, 100);
    simulator.inject(Fault::on(Function::cuMemAllocAsync).returns(OUT_OF_MEMORY));
    resource
        .allocate(&stream, 600, 256)
        .expect_err("the injected fault occurs");
    let counts = resource.counts();
    assert_eq!(
        (counts.allocations, counts.frees, counts.failures),
        (2, 1, 1)
    );
    assert_eq!(
        (counts.allocated_bytes, counts.live_bytes, counts.peak_bytes),
        (300, 200, 300)
    );
    assert_eq!((counts.live, counts.peak), (1, 2));
    resource.reset_peaks();
    let counts = resource.counts();
    assert_eq!((counts.peak_bytes, counts.peak), (200, 1));
    free(&resource, &stream, second, 200);
    Ok(())
}

#[driver_test]
fn tracking_records_the_call_site(test: &TestDriver) -> TestResult {
    // Through other adaptors and pointers too.
    let resource = Arc::new(Statistics::new(LeakTracker::new(StreamOrdered)));
    let stream = test.stream();
    let line = Location::caller().line() + 1;
    let pointer = resource.allocate(&stream, 100, 256)?;
    let live = resource.inner().live();
    assert_eq!(live.len(), 1);
    assert_eq!(
        (live[0].pointer, live[0].bytes, live[0].alignment),
        (pointer, 100, 256)
    );
    assert_eq!((live[0].site.file(), live[0].site.line()), (file!(), line));
    let text = live[0].to_string();
    assert!(
        text.starts_with("100 bytes at 0x") && text.contains("resource_adaptor.rs:"),
        "{text}"
    );
    free(&resource, &stream, pointer, 100);
    assert!(resource.inner().live().is_empty());
    Ok(())
}

/// The tracking adaptor rejects double frees and frees with another size.
#[driver_test]
fn tracking_rejects_invalid_frees(test: &TestDriver) -> TestResult {
    let resource = LeakTracker::new(StreamOrdered);
    let stream = test.stream();
    let pointer = resource.allocate(&stream, 100, 256)?;
    for (pointer, bytes, expected) in [
        (
            pointer,
            99,
            "freed 99 bytes aligned to 256, allocated 100 bytes at",
        ),
        (
            pointer.wrapping_add(1),
            100,
            "not a live allocation of this resource",
        ),
    ] {
        // SAFETY: the resource returns an error before it frees anything.
        let error = unsafe { resource.deallocate(&stream, pointer, bytes, 256) }
            .expect_err("the figures differ");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    free(&resource, &stream, pointer, 100);
    // SAFETY: the resource returns an error before it frees anything.
    unsafe { resource.deallocate(&stream, pointer, 100, 256) }.expect_err("it is freed already");
    Ok(())
}

/// The tracking adaptor reports leaks with their lines when it is dropped.
#[driver_test]
fn tracking_reports_leaks_with_their_lines(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&reports);
    let resource = LeakTracker::new(StreamOrdered);
    let pointers: Vec<_> = (1..=20)
        .map(|bytes| {
            resource
                .allocate(&stream, bytes, 256)
                .expect("allocation failed")
        })
        .collect();
    set_drop_observer(Some(Arc::new(move |error: &Error| {
        seen.lock().push(error.to_string());
    })));
    drop(resource);
    set_drop_observer(None);
    let reports = reports.lock().clone();
    let report = reports
        .iter()
        .find(|report| report.starts_with("LeakTracker::drop"))
        .ok_or("no leak report")?;
    assert!(
        report.contains("20 leaked allocations of 210 bytes in total"),
        "{report}"
    );
    assert!(
        report.contains("\n  16 bytes at 0x") && report.ends_with("\n  and 4 more"),
        "{report}"
    );
    pointers
        .into_iter()
        .zip(1..)
        .for_each(|(pointer, bytes)| free(&StreamOrdered, &stream, pointer, bytes));
    Ok(())
}

/// A callback decides how often a failed allocation is tried.
#[simulator_test]
fn callback_decides_about_retries(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let calls = AtomicUsize::new(0);
    let resource = FailureCallback::new(StreamOrdered, |error: &Error, _: &Stream, bytes| {
        assert!(error.is_out_of_memory() && bytes == 100, "{error}");
        calls.fetch_add(1, Ordering::Relaxed) < 2
    });
    let stream = test.stream();
    for call in [1, 2] {
        simulator.inject(
            Fault::on(Function::cuMemAllocAsync)
                .call(call)
                .returns(OUT_OF_MEMORY),
        );
    }
    let pointer = resource.allocate(&stream, 100, 256)?;
    free(&resource, &stream, pointer, 100);
    simulator.inject(
        Fault::on(Function::cuMemAllocAsync)
            .always()
            .returns(OUT_OF_MEMORY),
    );
    resource
        .allocate(&stream, 100, 256)
        .expect_err("the callback returns an error");
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    simulator.clear_faults();
    Ok(())
}

#[simulator_test]
fn recording_keeps_the_last_events(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let resource = AllocationRecorder::ring(StreamOrdered, 4);
    let stream = test.stream();
    let line = line!() + 1;
    let pointer = resource.allocate(&stream, 100, 256)?;
    free(&resource, &stream, pointer, 100);
    simulator.inject(Fault::on(Function::cuMemAllocAsync).returns(OUT_OF_MEMORY));
    resource
        .allocate(&stream, 200, 256)
        .expect_err("the injected fault occurs");
    let events = resource.events();
    let kinds: Vec<_> = events
        .iter()
        .map(|event| (event.kind, event.address, event.bytes))
        .collect();
    let address = pointer.as_raw();
    let free_bytes = events[2].address;
    assert_eq!(
        kinds,
        [
            (EventKind::Allocate, address, 100),
            (EventKind::Free, address, 100),
            (EventKind::Fail, free_bytes, 200)
        ]
    );
    let total = test.device().total_memory()?;
    assert!(
        (1..=total as u64).contains(&free_bytes),
        "{free_bytes} of {total} bytes are free"
    );
    assert_eq!(events[0].site.as_ref().map(|site| site.line), Some(line));
    assert!(events.is_sorted_by_key(|event| event.nanoseconds));
    for _ in 0..3 {
        let pointer = resource.allocate(&stream, 300, 256)?;
        free(&resource, &stream, pointer, 300);
    }
    assert_eq!((resource.events().len(), resource.lost()), (4, 5));
    assert!(resource.events().iter().all(|event| event.bytes == 300));
    Ok(())
}

/// A writer that exposes its text to the test, and fails when it is full.
#[derive(Clone, Default)]
struct Paper {
    text: Arc<Mutex<Vec<u8>>>,
    room: usize,
}

impl std::io::Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut text = self.text.lock();
        if text.len() + bytes.len() > self.room {
            return Err(std::io::Error::other("the paper is full"));
        }
        text.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[driver_test]
fn recorded_log_is_replayed_on_another_resource(test: &TestDriver) -> TestResult {
    let paper = Paper {
        room: usize::MAX,
        ..Paper::default()
    };
    let stream = test.stream();
    let other = test.stream();
    let resource = AllocationRecorder::to_writer(StreamOrdered, paper.clone());
    let retained = resource.allocate(&stream, 5000, 256)?;
    for bytes in 1..20 {
        let pointer = resource.allocate(&other, bytes * 100, 256)?;
        free(&resource, &other, pointer, bytes * 100);
    }
    resource.flush()?;
    let text = String::from_utf8(paper.text.lock().clone());
    let log: AllocationLog = text?.parse()?;
    assert_eq!((log.events().len(), log.live().len()), (39, 1));
    let target = Statistics::new(StreamOrdered);
    let replay = log.replay(&target, &test.context())?;
    assert_eq!(
        (
            replay.allocations,
            replay.frees,
            replay.left,
            replay.failures
        ),
        (20, 19, 1, 0)
    );
    assert_eq!(
        (replay.peak_bytes, target.counts().peak_bytes),
        (6900, 6900)
    );
    assert_eq!((target.counts().allocations, target.counts().live), (20, 0));
    free(&resource, &stream, retained, 5000);
    Ok(())
}

#[simulator_test]
fn replay_that_fails_frees_its_allocations(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let text = "curium allocation log 1\n1 allocate 0x200 64 1 1\n2 free 0x999 1 1 1\n3 allocate 0x400 64 1 2\n";
    let log: AllocationLog = text.parse()?;
    let context = test.context();
    let function = Function::cuMemAllocAsync;
    simulator.inject(
        Fault::on(function)
            .call(2)
            .returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY),
    );
    let error = log
        .replay(&StreamOrdered, &context)
        .expect_err("the injected fault occurs");
    assert_eq!(error.function(), Some(function));
    context.synchronize()?;
    assert_eq!(simulator.live_handles().device_allocations, 0);
    simulator.inject(Fault::on(function).call(2).returns(OUT_OF_MEMORY));
    let replay = log.replay(&StreamOrdered, &context)?;
    assert_eq!(
        (
            replay.allocations,
            replay.failures,
            replay.unknown_frees,
            replay.left
        ),
        (1, 1, 1, 1)
    );
    Ok(())
}

#[driver_test]
fn log_that_cannot_be_written_harms_no_allocation(test: &TestDriver) -> TestResult {
    let paper = Paper {
        room: 60,
        ..Paper::default()
    };
    let stream = test.stream();
    let resource = AllocationRecorder::to_writer(StreamOrdered, paper);
    for _ in 0..3 {
        let pointer = resource.allocate(&stream, 100, 256)?;
        free(&resource, &stream, pointer, 100);
    }
    assert!(resource.lost() >= 5, "{} events are lost", resource.lost());
    Ok(())
}

/// Buffers are tracked and recorded with the line that creates them.
#[driver_test]
fn buffers_are_tracked_by_their_line(test: &TestDriver) -> TestResult {
    let resource = AllocationRecorder::ring(
        LeakTracker::new(Reclaiming::new(LimitedResource::new(
            StreamOrdered,
            1 << 20,
        ))),
        64,
    );
    let resource = &resource;
    let stream = &test.stream();
    macro_rules! assert_site {
        ($buffer:expr) => {{
            let buffer = $buffer?;
            let location = (file!(), line!());
            let site = resource
                .inner()
                .live()
                .pop()
                .ok_or("no buffer is live")?
                .site;
            assert_eq!((site.file(), site.line()), location);
            let event = resource.events().pop().ok_or("no allocation is recorded")?;
            let site = event.site.ok_or("no line is recorded")?;
            assert_eq!((&*site.file, site.line), location);
            drop(buffer);
        }};
    }
    assert_site!(DeviceBuffer::<u32, _>::uninit_in(stream, 4, resource));
    assert_site!(DeviceBuffer::<u32, _>::zeroed_in(stream, 4, resource));
    assert_site!(DeviceBuffer::filled_in(stream, 4, 7_u32, resource));
    assert_site!(DeviceBuffer::from_slice_in(stream, &[7_u32; 4], resource));
    assert_site!(DeviceBuffer::<u32, _>::maybe_uninit_in(stream, 4, resource));
    assert_site!(DeviceBox::new_in(stream, 7_u32, resource));
    Ok(())
}

/// A writer that runs a callback before it fails.
struct Acting<F>(F);

impl<F: FnMut()> std::io::Write for Acting<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (self.0)();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        (self.0)();
        Ok(())
    }
}

/// A writer that panics loses its lines and no allocation fails.
#[driver_test]
fn panicking_writer_fails_no_allocation(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let resource = AllocationRecorder::to_writer(
        StreamOrdered,
        Acting(|| panic!("this panic is part of the test")),
    );
    let buffer = DeviceBuffer::<u8, _>::zeroed_in(&stream, 16, &resource)?;
    drop(buffer);
    assert_eq!(
        resource.lost(),
        3,
        "the header, the allocation and the free"
    );
    resource.flush().expect_err("the writer panics");
    Ok(())
}

#[driver_test]
fn writer_may_use_the_resource_that_it_records(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let shared = Arc::new(OnceLock::<Weak<AllocationRecorder<StreamOrdered>>>::new());
    let inner = Arc::clone(&shared);
    let used = stream.clone();
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&writes);
    let writer = Acting(move || {
        if let Some(resource) = inner.get().and_then(Weak::upgrade)
            && counted.fetch_add(1, Ordering::Relaxed) == 0
        {
            drop(
                DeviceBuffer::<u8, _>::uninit_in(&used, 16, &*resource).expect("allocation failed"),
            );
        }
    });
    let resource = Arc::new(AllocationRecorder::to_writer(StreamOrdered, writer));
    shared
        .set(Arc::downgrade(&resource))
        .map_err(drop)
        .expect("set twice");
    let (finished, has_finished) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        drop(DeviceBuffer::<u8, _>::uninit_in(&stream, 16, &*resource).expect("allocation failed"));
        resource.flush().expect("the writer flushes");
        finished.send(resource.lost()).expect("the test waits");
    });
    let lost = has_finished.recv_timeout(std::time::Duration::from_secs(20));
    assert_eq!(lost, Ok(0), "the writer waits for itself");
    resume_panic(thread.join());
    assert!(
        writes.load(Ordering::Relaxed) >= 4,
        "two allocations and two frees are written"
    );
    Ok(())
}

pub(crate) mod operations {
    use curium_diagnostics::{AllocationLog, AllocationRecorder};
    use curium_memory::{FailureCallback, LeakTracker, LimitedResource, Statistics, StreamOrdered};

    use crate::operations::{Operation, Operations, allocate_and_free, made, upkeep};

    const OPERATIONS: &[Operation] = &[
        (
            "LeakTracker::allocate and LeakTracker::deallocate",
            |fixture| allocate_and_free(fixture, LeakTracker::new(StreamOrdered)),
        ),
        (
            "LimitedResource::allocate and LimitedResource::deallocate",
            |fixture| allocate_and_free(fixture, LimitedResource::new(StreamOrdered, 1 << 20)),
        ),
        (
            "FailureCallback::allocate and FailureCallback::deallocate",
            |fixture| {
                allocate_and_free(
                    fixture,
                    FailureCallback::new(StreamOrdered, |_, _, _| false),
                )
            },
        ),
        (
            "AllocationRecorder::allocate and AllocationRecorder::deallocate",
            |fixture| allocate_and_free(fixture, AllocationRecorder::ring(StreamOrdered, 16)),
        ),
        (
            "Statistics::allocate and Statistics::deallocate",
            |fixture| allocate_and_free(fixture, Statistics::new(StreamOrdered)),
        ),
        (
            "LimitedResource::trim and LimitedResource::synchronize and LimitedResource::purge",
            |fixture| upkeep(fixture, LimitedResource::new(StreamOrdered, 64)),
        ),
        (
            "FailureCallback::trim and FailureCallback::synchronize and FailureCallback::purge",
            |fixture| {
                upkeep(
                    fixture,
                    FailureCallback::new(StreamOrdered, |_, _, _| false),
                )
            },
        ),
        (
            "AllocationRecorder::trim and AllocationRecorder::synchronize and AllocationRecorder::purge",
            |fixture| upkeep(fixture, AllocationRecorder::ring(StreamOrdered, 16)),
        ),
        (
            "Statistics::trim and Statistics::synchronize and Statistics::purge",
            |fixture| upkeep(fixture, Statistics::new(StreamOrdered)),
        ),
        (
            "LeakTracker::trim and LeakTracker::synchronize and LeakTracker::purge",
            |fixture| upkeep(fixture, LeakTracker::new(StreamOrdered)),
        ),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[("AllocationLog::replay", |fixture| {
        let recording = AllocationRecorder::ring(StreamOrdered, 16);
        allocate_and_free(fixture, &recording)?;
        made(AllocationLog::new(recording.events()).replay(&StreamOrdered, &fixture.context)?)
    })];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
