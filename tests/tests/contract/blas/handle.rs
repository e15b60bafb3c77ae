//! The destruction of handles: after the capture that they were created in, and failures.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use curium_blas::lt::{BlasLt, CuBlasLt, Matmul, MatmulPlan, Operands, PlanOptions, TypedLayout};
use curium_blas::sys::{cublasHandle_t, cublasLtHandle_t, cublasStatus_t};
use curium_blas::{Blas, CuBlas, MatrixLayout};
use curium_driver::{Graph, set_drop_observer};
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_tests::{copy_of, in_new_process, on_simulator};

unsafe extern "C" fn fail(_: cublasHandle_t) -> cublasStatus_t {
    cublasStatus_t::CUBLAS_STATUS_INTERNAL_ERROR
}

unsafe extern "C" fn fail_lt(_: cublasLtHandle_t) -> cublasStatus_t {
    cublasStatus_t::CUBLAS_STATUS_INTERNAL_ERROR
}

#[test]
fn failure_of_the_library_to_destroy_a_handle_is_reported() {
    in_new_process(
        "blas::handle::failure_of_the_library_to_destroy_a_handle_is_reported",
        || {
            on_simulator(Config::new(), |test, _| {
                let reports = Arc::new(Mutex::new(Vec::new()));
                let sink = Arc::clone(&reports);
                set_drop_observer(Some(Arc::new(move |error: &curium_driver::Error| {
                    sink.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(error.to_string());
                })));
                let mut api = copy_of(curium_sim_libraries::cublas().api());
                api.cublasDestroy_v2 = Some(fail);
                // SAFETY: the functions are those of the simulated library, and one that fails.
                let library =
                    unsafe { CuBlas::from_api(api) }.expect("the library reports its version");
                drop(Blas::new(&library, &test.stream()).expect("a handle can be created"));
                let mut api = copy_of(curium_sim_libraries::cublaslt().api());
                api.cublasLtDestroy = Some(fail_lt);
                // SAFETY: as above.
                let library =
                    unsafe { CuBlasLt::from_api(api) }.expect("the library reports its version");
                drop(BlasLt::new(&library, &test.context()).expect("a handle can be created"));
                let reports =
                    std::mem::take(&mut *reports.lock().unwrap_or_else(PoisonError::into_inner));
                assert_eq!(reports.len(), 2, "{reports:?}");
                assert!(
                    reports[0].contains("cublasDestroy_v2: failed"),
                    "{reports:?}"
                );
                assert!(
                    reports[1].contains("cublasLtDestroy: failed"),
                    "{reports:?}"
                );
            });
        },
    );
}

static DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count(_: cublasHandle_t) -> cublasStatus_t {
    DESTROYED.fetch_add(1, Ordering::Relaxed);
    cublasStatus_t::CUBLAS_STATUS_SUCCESS
}

/// The library synchronizes the device when it destroys a handle, which would invalidate the capture.
#[test]
fn handle_that_is_created_and_dropped_in_a_capture_is_destroyed_after_it() {
    on_simulator(Config::new(), |test, _| {
        let mut api = copy_of(curium_sim_libraries::cublas().api());
        api.cublasDestroy_v2 = Some(count);
        // SAFETY: the functions are those of the simulated library, and one that does nothing.
        let library = unsafe { CuBlas::from_api(api) }.expect("the library reports its version");
        let graph = Graph::capture(&test.context(), |scope| {
            drop(Blas::new(&library, scope)?);
            assert_eq!(
                DESTROYED.load(Ordering::Relaxed),
                0,
                "the capture is still open"
            );
            Ok::<_, curium_blas::Error>(())
        });
        drop(graph.expect("the capture is valid"));
        assert_eq!(DESTROYED.load(Ordering::Relaxed), 1);
    });
}

static LT_DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count_lt(_: cublasLtHandle_t) -> cublasStatus_t {
    LT_DESTROYED.fetch_add(1, Ordering::Relaxed);
    cublasStatus_t::CUBLAS_STATUS_SUCCESS
}

#[test]
fn handle_of_cublaslt_is_destroyed_after_the_graph_that_captured_a_product() {
    on_simulator(Config::new(), |test, _| {
        let mut api = copy_of(curium_sim_libraries::cublaslt().api());
        api.cublasLtDestroy = Some(count_lt);
        // SAFETY: the functions are those of the simulated library, and one that does nothing.
        let library = unsafe { CuBlasLt::from_api(api) }.expect("the library reports its version");
        let (lt, stream) = (
            BlasLt::new(&library, &test.context()).expect("a handle can be created"),
            test.stream(),
        );
        let square = TypedLayout::new::<f32>(MatrixLayout::row_major(4, 4));
        let matmul = Matmul::new(square, square, square);
        let mut plan =
            MatmulPlan::new(&lt, &matmul, PlanOptions::default()).expect("there is an algorithm");
        let mut workspace = plan.workspace(&stream).expect("memory suffices");
        let a = DeviceBuffer::filled(&stream, 16, 1.0_f32).expect("memory suffices");
        let mut d = DeviceBuffer::<f32>::zeroed(&stream, 16).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            plan.execute(
                scope,
                Operands::new(&a, &a, &mut d).with_workspace(&mut workspace),
            )
        });
        drop((plan, lt));
        let graph = graph.expect("the product is captured");
        let mut executable = graph.instantiate().expect("the graph is valid");
        drop(graph);
        executable.launch(&stream).expect("it can be launched");
        assert_eq!(d.to_vec().expect("it can be read"), [4.0; 16]);
        assert_eq!(
            LT_DESTROYED.load(Ordering::Relaxed),
            0,
            "the graph can be launched again"
        );
        drop(executable);
        // Another thread may release what a graph keeps.
        let deadline = Instant::now() + Duration::from_secs(30);
        while LT_DESTROYED.load(Ordering::Relaxed) == 0 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(LT_DESTROYED.load(Ordering::Relaxed), 1);
    });
}
