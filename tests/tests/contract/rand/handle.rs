//! The end of a generator: once, after every graph that captured it, and failures are reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use curium_driver::{Graph, set_drop_observer};
use curium_memory::DeviceBuffer;
use curium_rand::sys::{Api, curandGenerator_t, curandOrdering_t, curandStatus_t};
use curium_rand::{CuRand, Generator, GeneratorOrdering, Philox4x32};
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, copy_of, in_new_process, on_simulator, simulator_test};
use parking_lot::Mutex;

/// Returns the simulated library with some other functions.
fn library(change: impl FnOnce(&mut Api)) -> TestResult<CuRand> {
    let mut api = copy_of(curium_sim_libraries::curand().api());
    change(&mut api);
    // SAFETY: the functions are those of the simulated library, and those of this module.
    Ok(unsafe { CuRand::from_api(api) }?)
}

/// The number of generators that were destroyed.
static DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count(_: curandGenerator_t) -> curandStatus_t {
    DESTROYED.fetch_add(1, Ordering::Relaxed);
    curandStatus_t::CURAND_STATUS_SUCCESS
}

unsafe extern "C" fn fail(_: curandGenerator_t) -> curandStatus_t {
    curandStatus_t::CURAND_STATUS_INTERNAL_ERROR
}

/// A generator is destroyed after the graph that captured it.
#[simulator_test]
fn generator_outlives_its_captured_graph(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let library = library(|api| api.curandDestroyGenerator = Some(count))?;
    let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 8)?;
    let mut generator = Generator::<Philox4x32>::seeded(&library, &stream, 1)?;
    let graph = Graph::capture(&test.context(), |scope| {
        generator.set_stream(scope)?;
        generator.uniform(&mut numbers)
    })?;
    drop(generator);
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

/// A failure of the library to destroy a generator is reported.
#[test]
fn failed_destruction_is_reported() -> TestResult {
    in_new_process(|| -> TestResult {
        on_simulator(Config::new(), |test, _| -> TestResult {
            let reports = Arc::new(Mutex::new(Vec::new()));
            let sink = Arc::clone(&reports);
            set_drop_observer(Some(Arc::new(move |error: &curium_driver::Error| {
                sink.lock().push(error.to_string());
            })));
            let library = library(|api| api.curandDestroyGenerator = Some(fail))?;
            drop(Generator::<Philox4x32>::seeded(
                &library,
                &test.stream(),
                1,
            )?);
            let reports = std::mem::take(&mut *reports.lock());
            assert_eq!(reports.len(), 1, "{reports:?}");
            assert!(
                reports[0].contains("curandDestroyGenerator: failed"),
                "{reports:?}"
            );
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// The orders that were set.
static ORDERS: Mutex<Vec<curandOrdering_t>> = Mutex::new(Vec::new());

unsafe extern "C" fn record(_: curandGenerator_t, order: curandOrdering_t) -> curandStatus_t {
    ORDERS.lock().push(order);
    curandStatus_t::CURAND_STATUS_SUCCESS
}

#[simulator_test]
fn each_order_matches_the_library(test: &TestDriver, _: &Simulator) -> TestResult {
    let library = library(|api| api.curandSetGeneratorOrdering = Some(record))?;
    let mut generator = Generator::<Philox4x32>::seeded(&library, &test.stream(), 1)?;
    let orders = [
        (
            GeneratorOrdering::Default,
            curandOrdering_t::CURAND_ORDERING_PSEUDO_DEFAULT,
        ),
        (
            GeneratorOrdering::Best,
            curandOrdering_t::CURAND_ORDERING_PSEUDO_BEST,
        ),
        (
            GeneratorOrdering::Seeded,
            curandOrdering_t::CURAND_ORDERING_PSEUDO_SEEDED,
        ),
        (
            GeneratorOrdering::Legacy,
            curandOrdering_t::CURAND_ORDERING_PSEUDO_LEGACY,
        ),
        (
            GeneratorOrdering::Dynamic,
            curandOrdering_t::CURAND_ORDERING_PSEUDO_DYNAMIC,
        ),
    ];
    orders.iter().for_each(|(order, _)| {
        generator
            .set_ordering(*order)
            .expect("the library accepts it");
    });
    let set = std::mem::take(&mut *ORDERS.lock());
    assert_eq!(set, orders.map(|(_, raw)| raw));
    Ok(())
}
