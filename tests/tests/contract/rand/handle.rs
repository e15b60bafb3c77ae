//! The end of a generator: once, after every graph that captured it, and failures are reported.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use curium_driver::{Graph, set_drop_observer};
use curium_memory::DeviceBuffer;
use curium_rand::sys::{Api, curandGenerator_t, curandOrdering_t, curandStatus_t};
use curium_rand::{CuRand, Generator, GeneratorOrdering, Philox4x32};
use curium_sim::Config;
use curium_tests::{copy_of, in_new_process, on_simulator};

/// Returns the simulated library with some other functions.
fn library(change: impl FnOnce(&mut Api)) -> CuRand {
    let mut api = copy_of(curium_sim_libraries::curand().api());
    change(&mut api);
    // SAFETY: the functions are those of the simulated library, and those of this module.
    unsafe { CuRand::from_api(api) }.expect("the library reports its version")
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

#[test]
fn generator_is_destroyed_after_the_graph_that_captured_it() {
    on_simulator(Config::new(), |test, _| {
        let (stream, library) = (
            test.stream(),
            library(|api| api.curandDestroyGenerator = Some(count)),
        );
        let mut numbers = DeviceBuffer::<f32>::zeroed(&stream, 8).expect("memory suffices");
        let mut generator =
            Generator::<Philox4x32>::seeded(&library, &stream, 1).expect("it can be created");
        let graph = Graph::capture(&test.context(), |scope| {
            generator.set_stream(scope)?;
            generator.uniform(&mut numbers)
        });
        let graph = graph.expect("it is captured");
        drop(generator);
        let mut executable = graph.instantiate().expect("the graph is correct");
        drop(graph);
        executable.launch(&stream).expect("it can be launched");
        stream.synchronize().expect("the launch succeeds");
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
    });
}

#[test]
fn failure_of_the_library_to_destroy_a_generator_is_reported() {
    in_new_process(
        "rand::handle::failure_of_the_library_to_destroy_a_generator_is_reported",
        || {
            on_simulator(Config::new(), |test, _| {
                let reports = Arc::new(Mutex::new(Vec::new()));
                let sink = Arc::clone(&reports);
                set_drop_observer(Some(Arc::new(move |error: &curium_driver::Error| {
                    sink.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(error.to_string());
                })));
                let library = library(|api| api.curandDestroyGenerator = Some(fail));
                drop(
                    Generator::<Philox4x32>::seeded(&library, &test.stream(), 1)
                        .expect("it can be created"),
                );
                let reports =
                    std::mem::take(&mut *reports.lock().unwrap_or_else(PoisonError::into_inner));
                assert_eq!(reports.len(), 1, "{reports:?}");
                assert!(
                    reports[0].contains("curandDestroyGenerator: failed"),
                    "{reports:?}"
                );
            });
        },
    );
}

/// The orders that were set.
static ORDERS: Mutex<Vec<curandOrdering_t>> = Mutex::new(Vec::new());

unsafe extern "C" fn record(_: curandGenerator_t, order: curandOrdering_t) -> curandStatus_t {
    ORDERS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(order);
    curandStatus_t::CURAND_STATUS_SUCCESS
}

#[test]
fn each_order_is_that_of_the_library() {
    on_simulator(Config::new(), |test, _| {
        let library = library(|api| api.curandSetGeneratorOrdering = Some(record));
        let mut generator = Generator::<Philox4x32>::seeded(&library, &test.stream(), 1)
            .expect("it can be created");
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
        let set = std::mem::take(&mut *ORDERS.lock().unwrap_or_else(PoisonError::into_inner));
        assert_eq!(set, orders.map(|(_, raw)| raw));
    });
}
