//! The tuner measures each product once.

use curium_blas::lt::{Epilogue, Matmul, MatmulPlan, Operands, PlanOptions, Scales, Tuner};
use curium_driver::{DiskCache, Graph};
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_sys::Function;
use curium_tests::{on_driver, on_simulator};
use float8::F8E4M3;
use half::bf16;

use super::{columns, execute, lt, rows};

/// A directory for a cache, which is removed at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("curium-tuner-{name}-{}", std::process::id())))
    }

    fn cache(&self) -> DiskCache {
        DiskCache::open(&self.0).expect("the folder can be created")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn tuner_selects_by_its_measurements_and_the_cache_repeats_it() {
    on_driver(|test| {
        let (lt, stream, folder) = (lt(test), test.stream(), Folder::new("fastest"));
        let square = rows::<f32>(96, 96);
        let matmul = Matmul::new(square, square, square).with_epilogue(Epilogue::Bias);
        let tuner = Tuner::new().with_cache(folder.cache()).with_repetitions(3);
        let tuned = tuner
            .plan(&lt, &stream, &matmul)
            .expect("there are algorithms");
        assert!(tuned.measurements.len() > 1, "{:?}", tuned.measurements);
        let fastest = tuned
            .measurements
            .iter()
            .min_by_key(|measurement| measurement.time)
            .expect("there is one");
        let first = tuned.measurements[0];
        let selected = if fastest.time.as_nanos() * 100 < first.time.as_nanos() * 99 {
            fastest
        } else {
            &first
        };
        assert_eq!(tuned.plan.algorithm(), Some(&selected.algorithm));
        let again = tuner.plan(&lt, &stream, &matmul).expect("the cache has it");
        assert_eq!(
            (again.plan.algorithm(), again.measurements.len()),
            (tuned.plan.algorithm(), 0)
        );
        // Other products, and other limits, are measured for themselves.
        let other = tuner
            .plan(&lt, &stream, &matmul.with_epilogue(Epilogue::None))
            .expect("there are algorithms");
        assert!(!other.measurements.is_empty());
        let limited = tuner.with_options(PlanOptions::default().with_workspace_limit(0));
        let limited = limited
            .plan(&lt, &stream, &matmul)
            .expect("there are algorithms");
        assert_eq!(limited.plan.workspace_bytes(), 0);
    });
}

#[test]
fn cached_plan_launches_nothing() {
    on_simulator(Config::new(), |test, simulator| {
        let (lt, stream, folder) = (lt(test), test.stream(), Folder::new("launches"));
        let square = rows::<f32>(64, 64);
        let (matmul, tuner) = (
            Matmul::new(square, square, square),
            Tuner::new().with_cache(folder.cache()),
        );
        let tuned = tuner
            .plan(&lt, &stream, &matmul)
            .expect("there are algorithms");
        assert_eq!(
            tuned.measurements.len(),
            3,
            "the library for simulated devices has three algorithms"
        );
        let before = simulator.calls(Function::cuLaunchKernel);
        assert!(before >= 3 * 11, "each is run 11 times, {before} launches");
        let mut again = tuner
            .plan(&lt, &stream, &matmul)
            .expect("the cache has it")
            .plan;
        assert_eq!(simulator.calls(Function::cuLaunchKernel), before);
        let a = DeviceBuffer::filled(&stream, 64 * 64, 1.0_f32).expect("memory suffices");
        let mut d = DeviceBuffer::<f32>::zeroed(&stream, 64 * 64).expect("memory suffices");
        execute(&mut again, &stream, Operands::new(&a, &a, &mut d));
        assert_eq!(d.to_vec().expect("it can be read"), vec![64.0; 64 * 64]);
    });
}

#[test]
fn every_kind_of_operand_is_measured() {
    on_driver(|test| {
        let (lt, stream) = (lt(test), test.stream());
        let (a, b) = (rows::<bf16>(32, 64), columns::<bf16>(64, 48));
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
        let capability = test
            .device()
            .compute_capability()
            .expect("the device reports it");
        if (capability.major, capability.minor) >= (8, 9) {
            let (a, b) = (rows::<F8E4M3>(32, 64), columns::<F8E4M3>(64, 48));
            let matmul = Matmul::new(a, b, rows::<bf16>(32, 48)).with_scales(Scales::A | Scales::B);
            tuner
                .plan(&lt, &stream, &matmul)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    });
}

#[test]
fn planning_in_a_capture_is_refused() {
    on_driver(|test| {
        let (lt, stream) = (lt(test), test.stream());
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
    });
}
