//! The end of a plan: once, after every graph that captured it, and failures are reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use curium_driver::{Graph, set_drop_observer};
use curium_fft::sys::{Api, cufftHandle, cufftResult};
use curium_fft::{Complex64, CuFft, Plan, Shape};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, copy_of, in_new_process, on_simulator, simulator_test};
use parking_lot::Mutex;

/// Returns the simulated library with some other functions.
fn library(change: impl FnOnce(&mut Api)) -> TestResult<CuFft> {
    let mut api = copy_of(curium_sim_libraries::cufft().api());
    change(&mut api);
    // SAFETY: the functions are those of the simulated library, and those of this module.
    Ok(unsafe { CuFft::from_api(api) }?)
}

/// The number of plans that were destroyed.
static DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count(_: cufftHandle) -> cufftResult {
    DESTROYED.fetch_add(1, Ordering::Relaxed);
    cufftResult::CUFFT_SUCCESS
}

unsafe extern "C" fn fail(_: cufftHandle) -> cufftResult {
    cufftResult::CUFFT_INTERNAL_ERROR
}

#[simulator_test]
fn plan_is_destroyed_after_the_graph_that_captured_it(
    test: &TestDriver,
    _: &Simulator,
) -> TestResult {
    let stream = test.stream();
    let library = library(|api| api.cufftDestroy = Some(count))?;
    let mut data = DeviceBuffer::<Complex64>::zeroed(&stream, 4)?;
    let graph = Graph::capture(&test.context(), |scope| {
        let mut plan = Plan::<Complex64, Complex64>::new(&library, scope, &Shape::new([4]))?;
        plan.forward_in_place(&mut data)
    })?;
    let mut executable = graph.instantiate()?;
    drop(graph);
    executable.launch(&stream)?;
    stream.synchronize()?;
    assert_eq!(
        DESTROYED.load(Ordering::Relaxed),
        0,
        "the graph can be launched again"
    );
    drop(executable);
    // Another thread may release what a graph keeps.
    let deadline = Instant::now() + Duration::from_secs(30);
    while DESTROYED.load(Ordering::Relaxed) == 0 && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(DESTROYED.load(Ordering::Relaxed), 1);
    Ok(())
}

/// A failure of the library to destroy a plan is reported.
#[test]
fn failed_destruction_is_reported() -> TestResult {
    in_new_process(|| -> TestResult {
        on_simulator(Config::new(), |test, _| -> TestResult {
            let reports = Arc::new(Mutex::new(Vec::new()));
            let sink = Arc::clone(&reports);
            set_drop_observer(Some(Arc::new(move |error: &curium_driver::Error| {
                sink.lock().push(error.to_string());
            })));
            let library = library(|api| api.cufftDestroy = Some(fail))?;
            drop(Plan::<Complex64, Complex64>::new(
                &library,
                &test.stream(),
                &Shape::new([4]),
            )?);
            let reports = std::mem::take(&mut *reports.lock());
            assert_eq!(reports.len(), 1, "{reports:?}");
            assert!(reports[0].contains("cufftDestroy: failed"), "{reports:?}");
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}
