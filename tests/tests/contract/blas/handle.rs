//! The destruction of handles: after the capture that they were created in, and failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use curium_blas::lt::{BlasLt, CuBlasLt, Matmul, MatmulPlan, Operands, PlanOptions, TypedLayout};
use curium_blas::sys::{cublasHandle_t, cublasLtHandle_t, cublasStatus_t};
use curium_blas::{Blas, CuBlas, MatrixLayout};
use curium_driver::{Graph, set_drop_observer};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Simulator};
use curium_tests::{TestDriver, TestResult, copy_of, in_new_process, on_simulator, simulator_test};
use parking_lot::Mutex;

unsafe extern "C" fn fail(_: cublasHandle_t) -> cublasStatus_t {
    cublasStatus_t::CUBLAS_STATUS_INTERNAL_ERROR
}

unsafe extern "C" fn fail_lt(_: cublasLtHandle_t) -> cublasStatus_t {
    cublasStatus_t::CUBLAS_STATUS_INTERNAL_ERROR
}

/// A failure of the library to destroy a handle is reported.
#[test]
fn failed_handle_destruction_is_reported() -> TestResult {
    in_new_process(|| -> TestResult {
        on_simulator(Config::new(), |test, _| -> TestResult {
            let reports = Arc::new(Mutex::new(Vec::new()));
            let sink = Arc::clone(&reports);
            set_drop_observer(Some(Arc::new(move |error: &curium_driver::Error| {
                sink.lock().push(error.to_string());
            })));
            let mut api = copy_of(curium_sim_libraries::cublas().api());
            api.cublasDestroy_v2 = Some(fail);
            // SAFETY: the functions are those of the simulated library, and one that fails.
            let library = unsafe { CuBlas::from_api(api) }?;
            drop(Blas::new(&library, &test.stream())?);
            let mut api = copy_of(curium_sim_libraries::cublaslt().api());
            api.cublasLtDestroy = Some(fail_lt);
            // SAFETY: the functions are those of the simulated library, and one that fails.
            let library = unsafe { CuBlasLt::from_api(api) }?;
            drop(BlasLt::new(&library, &test.context())?);
            let reports = std::mem::take(&mut *reports.lock());
            assert_eq!(reports.len(), 2, "{reports:?}");
            assert!(
                reports[0].contains("cublasDestroy_v2: failed"),
                "{reports:?}"
            );
            assert!(
                reports[1].contains("cublasLtDestroy: failed"),
                "{reports:?}"
            );
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

static DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count(_: cublasHandle_t) -> cublasStatus_t {
    DESTROYED.fetch_add(1, Ordering::Relaxed);
    cublasStatus_t::CUBLAS_STATUS_SUCCESS
}

/// A handle that is created and dropped in a capture is destroyed after it.
///
/// The library synchronizes the device when it destroys a handle, which would invalidate the
/// capture.
#[simulator_test]
fn handle_dropped_in_a_capture_is_destroyed_later(test: &TestDriver, _: &Simulator) -> TestResult {
    let mut api = copy_of(curium_sim_libraries::cublas().api());
    api.cublasDestroy_v2 = Some(count);
    // SAFETY: the functions are those of the simulated library, and one that does nothing.
    let library = unsafe { CuBlas::from_api(api) }?;
    let graph = Graph::capture(&test.context(), |scope| {
        drop(Blas::new(&library, scope)?);
        assert_eq!(
            DESTROYED.load(Ordering::Relaxed),
            0,
            "the capture is still open"
        );
        Ok::<_, curium_blas::Error>(())
    });
    drop(graph?);
    assert_eq!(DESTROYED.load(Ordering::Relaxed), 1);
    Ok(())
}

static LT_DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count_lt(_: cublasLtHandle_t) -> cublasStatus_t {
    LT_DESTROYED.fetch_add(1, Ordering::Relaxed);
    cublasStatus_t::CUBLAS_STATUS_SUCCESS
}

/// A handle of cuBLASLt is destroyed after the graph that captured a product.
#[simulator_test]
fn cublaslt_handle_outlives_its_captured_graph(test: &TestDriver, _: &Simulator) -> TestResult {
    let mut api = copy_of(curium_sim_libraries::cublaslt().api());
    api.cublasLtDestroy = Some(count_lt);
    // SAFETY: the functions are those of the simulated library, and one that does nothing.
    let library = unsafe { CuBlasLt::from_api(api) }?;
    let lt = BlasLt::new(&library, &test.context())?;
    let stream = test.stream();
    let square = TypedLayout::new::<f32>(MatrixLayout::row_major(4, 4));
    let matmul = Matmul::new(square, square, square);
    let mut plan = MatmulPlan::new(&lt, &matmul, PlanOptions::default())?;
    let mut workspace = plan.workspace(&stream)?;
    let a = DeviceBuffer::filled(&stream, 16, 1.0_f32)?;
    let mut d = DeviceBuffer::<f32>::zeroed(&stream, 16)?;
    let graph = Graph::capture(&test.context(), |scope| {
        plan.execute(
            scope,
            Operands::new(&a, &a, &mut d).with_workspace(&mut workspace),
        )
    });
    drop((plan, lt));
    let graph = graph?;
    let mut executable = graph.instantiate()?;
    drop(graph);
    executable.launch(&stream)?;
    assert_eq!(d.to_vec()?, [4.0; 16]);
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
    Ok(())
}
