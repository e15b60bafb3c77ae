//! The tuner measures each product once.

use curium_blas::lt::{Epilogue, Matmul, MatmulPlan, Operands, PlanOptions, Scales, Tuner};
use curium_driver::{DiskCache, Graph};
use curium_memory::DeviceBuffer;
use curium_sim::Simulator;
use curium_sys::Function;
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};
use float8::F8E4M3;
use half::bf16;

use super::{columns, execute, lt, rows};

/// A directory for a cache, which is removed at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("curium-tuner-{name}-{}", std::process::id())))
    }

    fn cache(&self) -> TestResult<DiskCache> {
        Ok(DiskCache::open(&self.0)?)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A tuner selects by its measurements and the cache repeats it.
#[driver_test]
fn tuner_selects_by_measurement_and_caches(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let folder = Folder::new("fastest");
    let square = rows::<f32>(96, 96);
    let matmul = Matmul::new(square, square, square).with_epilogue(Epilogue::Bias);
    let tuner = Tuner::new().with_cache(folder.cache()?).with_repetitions(3);
    let tuned = tuner.plan(&lt, &stream, &matmul)?;
    assert!(tuned.measurements.len() > 1, "{:?}", tuned.measurements);
    let fastest = tuned
        .measurements
        .iter()
        .min_by_key(|measurement| measurement.time)
        .ok_or("no measurement")?;
    let first = tuned.measurements[0];
    let selected = if fastest.time.as_nanos() * 100 < first.time.as_nanos() * 99 {
        fastest
    } else {
        &first
    };
    assert_eq!(tuned.plan.algorithm(), Some(&selected.algorithm));
    let again = tuner.plan(&lt, &stream, &matmul)?;
    assert_eq!(
        (again.plan.algorithm(), again.measurements.len()),
        (tuned.plan.algorithm(), 0)
    );
    // Other products, and other limits, are measured for themselves.
    let other = tuner.plan(&lt, &stream, &matmul.with_epilogue(Epilogue::None))?;
    assert!(!other.measurements.is_empty());
    let limited = tuner.with_options(PlanOptions::default().with_workspace_limit(0));
    let limited = limited.plan(&lt, &stream, &matmul)?;
    assert_eq!(limited.plan.workspace_bytes(), 0);
    Ok(())
}

#[simulator_test]
fn cached_plan_launches_nothing(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let folder = Folder::new("launches");
    let square = rows::<f32>(64, 64);
    let matmul = Matmul::new(square, square, square);
    let tuner = Tuner::new().with_cache(folder.cache()?);
    let tuned = tuner.plan(&lt, &stream, &matmul)?;
    assert_eq!(
        tuned.measurements.len(),
        3,
        "the library for simulated devices has three algorithms"
    );
    let before = simulator.calls(Function::cuLaunchKernel);
    assert!(before >= 3 * 11, "each is run 11 times, {before} launches");
    let mut again = tuner.plan(&lt, &stream, &matmul)?.plan;
    assert_eq!(simulator.calls(Function::cuLaunchKernel), before);
    let a = DeviceBuffer::filled(&stream, 64 * 64, 1.0_f32)?;
    let mut d = DeviceBuffer::<f32>::zeroed(&stream, 64 * 64)?;
    execute(&mut again, &stream, Operands::new(&a, &a, &mut d));
    assert_eq!(d.to_vec()?, vec![64.0; 64 * 64]);
    Ok(())
}

#[driver_test]
fn every_operand_kind_is_measured(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let a = rows::<bf16>(32, 64);
    let b = columns::<bf16>(64, 48);
    let tuner = Tuner::new().with_candidates(2).with_repetitions(1);
    for epilogue in [
        Epilogue::ReluAuxiliaryBias,
        Epilogue::GeluBiasGradient,
        Epilogue::Relu,
    ] {
        let matmul = Matmul::new(a, b, rows::<bf16>(32, 48)).with_epilogue(epilogue);
        tuner
            .plan(&lt, &stream, &matmul)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    let capability = test.device().compute_capability()?;
    if (capability.major, capability.minor) >= (8, 9) {
        let a = rows::<F8E4M3>(32, 64);
        let b = columns::<F8E4M3>(64, 48);
        let matmul = Matmul::new(a, b, rows::<bf16>(32, 48)).with_scales(Scales::A | Scales::B);
        tuner
            .plan(&lt, &stream, &matmul)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    Ok(())
}

#[driver_test]
fn planning_in_a_capture_is_refused(test: &TestDriver) {
    let lt = lt(test);
    let stream = test.stream();
    let square = rows::<f32>(16, 16);
    let matmul = Matmul::new(square, square, square);
    let refused = Graph::capture(&test.context(), |_| {
        MatmulPlan::new(&lt, &matmul, PlanOptions::default()).map(drop)
    });
    let error = refused
        .map(drop)
        .expect_err("heuristics may differ in captures")
        .to_string();
    assert!(error.contains("MatmulPlan::new"), "{error}");
    let refused = Graph::capture(&test.context(), |_| {
        Tuner::new().plan(&lt, &stream, &matmul).map(drop)
    });
    let error = refused.map(drop).expect_err("the host waits").to_string();
    assert!(error.contains("Tuner::plan"), "{error}");
}
