//! The end of a plan: once, after every graph that captured it, and failures are reported.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use curium_driver::{Graph, set_drop_observer};
use curium_fft::sys::{Api, cufftHandle, cufftResult};
use curium_fft::{Complex64, CuFft, Plan, Shape};
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_tests::{copy_of, in_new_process, on_simulator};

/// Returns the simulated library with some other functions.
fn library(change: impl FnOnce(&mut Api)) -> CuFft {
    let mut api = copy_of(curium_sim_libraries::cufft().api());
    change(&mut api);
    // SAFETY: the functions are those of the simulated library, and those of this module.
    unsafe { CuFft::from_api(api) }.expect("the library reports its version")
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

#[test]
fn plan_is_destroyed_after_the_graph_that_captured_it() {
    on_simulator(Config::new(), |test, _| {
        let (stream, library) = (test.stream(), library(|api| api.cufftDestroy = Some(count)));
        let mut data = DeviceBuffer::<Complex64>::zeroed(&stream, 4).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            let mut plan = Plan::<Complex64, Complex64>::new(&library, scope, &Shape::new([4]))?;
            plan.forward_in_place(&mut data)
        });
        let graph = graph.expect("it is captured");
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
fn failure_of_the_library_to_destroy_a_plan_is_reported() {
    in_new_process(
        "fft::handle::failure_of_the_library_to_destroy_a_plan_is_reported",
        || {
            on_simulator(Config::new(), |test, _| {
                let reports = Arc::new(Mutex::new(Vec::new()));
                let sink = Arc::clone(&reports);
                set_drop_observer(Some(Arc::new(move |error: &curium_driver::Error| {
                    sink.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(error.to_string());
                })));
                let library = library(|api| api.cufftDestroy = Some(fail));
                drop(
                    Plan::<Complex64, Complex64>::new(&library, &test.stream(), &Shape::new([4]))
                        .expect("it can be created"),
                );
                let reports =
                    std::mem::take(&mut *reports.lock().unwrap_or_else(PoisonError::into_inner));
                assert_eq!(reports.len(), 1, "{reports:?}");
                assert!(reports[0].contains("cufftDestroy: failed"), "{reports:?}");
            });
        },
    );
}
