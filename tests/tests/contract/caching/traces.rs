//! Traces of allocations on several streams: see `tests/traces/README.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use curium_diagnostics::{AllocationLog, EventKind};
use curium_driver::{Call, Function, Stream, observe_calls};
use curium_memory::{CachingOptions, CachingResource, DeviceBuffer};
use curium_sim::Simulator;
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::caching;
use super::stitching::mapping_calls;

/// The resource reserves at most 5 % more than the peak of the memory in use.
#[driver_test]
fn traces_reserve_little_more_than_they_use(test: &TestDriver) -> TestResult {
    for path in traces()? {
        let log: AllocationLog = fs::read_to_string(&path)?.parse()?;
        let resource = caching(test)?;
        let replay = log.replay(&resource, &test.context())?;
        assert_eq!((replay.failures, replay.unknown_frees), (0, 0), "{path:?}");
        assert_reserved(
            &path,
            resource.statistics().reserved_bytes,
            replay.peak_bytes,
        );
        // The second time, on other streams, the memory is reused once the events at the ends of
        // the first streams are passed.
        test.context().synchronize()?;
        log.replay(&resource, &test.context())?;
        assert_reserved(
            &path,
            resource.statistics().reserved_bytes,
            replay.peak_bytes,
        );
        // The model of the resource.
        for scale in [1, 4, 16] {
            let mut events = log.events().to_vec();
            for event in &mut events {
                event.bytes *= scale;
            }
            let samples = AllocationLog::new(events).simulate_caching(32 << 20);
            let simulated = samples.iter().map(|sample| sample.reserved_bytes).max();
            assert_reserved(
                &path,
                simulated.unwrap_or_default(),
                replay.peak_bytes * scale as u64,
            );
        }
    }
    Ok(())
}

/// A private pool reserves as much for a capture as is estimated from the log of a run without a
/// capture.
#[driver_test]
fn private_pool_reserves_its_estimate(test: &TestDriver) -> TestResult {
    let segment_bytes = CachingOptions::new().segment_bytes;
    for path in traces()? {
        let log: AllocationLog = fs::read_to_string(&path)?.parse()?;
        let pool = caching(test)?.private_pool()?;
        log.replay(&pool, &test.context())?;
        assert_eq!(
            pool.statistics().reserved_bytes,
            log.estimate_private_pool(segment_bytes),
            "{path:?}"
        );
    }
    Ok(())
}

/// The functions with which the host or a stream waits.
const WAITS: [Function; 4] = [
    Function::cuStreamWaitEvent,
    Function::cuStreamSynchronize,
    Function::cuEventSynchronize,
    Function::cuCtxSynchronize,
];

/// Neither the host nor a stream waits for the memory of another stream, also while the resource
/// grows.
#[simulator_test]
fn traces_do_not_wait(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let context = test.context();
    for path in traces()? {
        let log: AllocationLog = fs::read_to_string(&path)?.parse()?;
        let resource = caching(test)?;
        let before = WAITS.map(|function| simulator.calls(function));
        for _ in 0..2 {
            log.replay(&resource, &context)?;
        }
        let after = WAITS.map(|function| simulator.calls(function));
        assert_eq!(before, after, "{}", path.display());
    }
    Ok(())
}

/// The number of repetitions after which a trace finds all of its memory.
const REPETITIONS: usize = 7;

/// A trace that is repeated changes no mapping after few repetitions, although its streams are new
/// each time.
#[simulator_test]
fn repeated_traces_change_no_mapping(test: &TestDriver, simulator: &Simulator) -> TestResult {
    for path in traces()? {
        let log: AllocationLog = fs::read_to_string(&path)?.parse()?;
        let resource = caching(test)?;
        for _ in 0..REPETITIONS {
            log.replay(&resource, &test.context())?;
            // The memory of the streams that end is available to the next ones.
            test.context().synchronize()?;
        }
        let before = mapping_calls(simulator);
        let replay = log.replay(&resource, &test.context())?;
        assert_eq!(mapping_calls(simulator), before, "{}", path.display());
        let reserved = resource.statistics().reserved_bytes;
        assert_reserved(&path, reserved, replay.peak_bytes);
    }
    Ok(())
}

/// The same in the model of the resource, with the same streams each time.
#[test]
fn repeated_traces_map_nothing_in_the_model() -> TestResult {
    for path in traces()? {
        let log: AllocationLog = fs::read_to_string(&path)?.parse()?;
        let mut events = Vec::new();
        for _ in 0..=REPETITIONS {
            events.extend_from_slice(log.events());
            events.extend(log.live().into_iter().map(|mut event| {
                event.kind = EventKind::Free;
                event
            }));
        }
        let length = events.len() / (REPETITIONS + 1);
        let samples = AllocationLog::new(events).simulate_caching(32 << 20);
        let mappings: Vec<_> = samples
            .chunks(length)
            .filter_map(|repetition| Some(repetition.last()?.mappings))
            .collect();
        assert_eq!(
            mappings[REPETITIONS - 1],
            mappings[REPETITIONS],
            "{}: {mappings:?}",
            path.display()
        );
    }
    Ok(())
}

/// The sizes of the activations of a layer, and of the temporary memory that its operations use, in
/// bytes.
const ACTIVATIONS: [usize; 6] = [16 << 20, 48 << 20, 16 << 20, 512 << 10, 64 << 20, 8 << 10];
const TEMPORARY: usize = 36 << 20;
const LAYERS: usize = 12;

/// Training steps with the same sizes make no call of the driver once the first step has made the
/// resource grow.
#[driver_test]
fn repeated_training_steps_make_no_call(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let resource = caching(test)?;
    for _ in 0..2 {
        training_step(&stream, &resource)?;
    }
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let this = thread::current().id();
    let guard = observe_calls(move |_: &Call<'_>| {
        if thread::current().id() == this {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    for _ in 0..10 {
        training_step(&stream, &resource)?;
    }
    drop(guard);
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    Ok(())
}

/// Allocates the activations of each layer, and frees them in reverse order, with temporary memory
/// in each layer.
fn training_step(stream: &Stream, resource: &CachingResource) -> TestResult {
    let mut layers = Vec::new();
    for _ in 0..LAYERS {
        let temporary = DeviceBuffer::<u8, _>::uninit_in(stream, TEMPORARY, resource)?;
        let activations = ACTIVATIONS
            .iter()
            .map(|bytes| DeviceBuffer::<u8, _>::uninit_in(stream, *bytes, resource))
            .collect::<curium_driver::Result<Vec<_>>>()?;
        drop(temporary);
        layers.push(activations);
    }
    while let Some(activations) = layers.pop() {
        let gradient = DeviceBuffer::<u8, _>::uninit_in(stream, TEMPORARY, resource)?;
        drop(activations);
        drop(gradient);
    }
    Ok(())
}

/// Returns the paths of the traces.
fn traces() -> TestResult<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            paths.push(path);
        }
    }
    paths.sort();
    assert!(paths.len() >= 9, "{} traces", paths.len());
    Ok(paths)
}

fn assert_reserved(path: &Path, reserved: u64, peak: u64) {
    let ratio = reserved as f64 / peak as f64;
    assert!(
        (1.0..=1.05).contains(&ratio),
        "{}: {ratio:.3} of the memory in use is reserved",
        path.display()
    );
}
