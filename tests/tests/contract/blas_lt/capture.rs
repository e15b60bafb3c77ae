//! Plans in captures and on several streams.

use curium_blas::lt::{Epilogue, Matmul, Operands};
use curium_driver::Graph;
use curium_memory::{BorrowedBuffer, DeviceBuffer};
use curium_sim::{Checks, Config};
use curium_tests::{on_driver, on_simulator};

use super::{lt, plan, rows};

#[test]
fn graph_keeps_operands_workspace_and_handle_of_a_plan_that_is_dropped() {
    on_driver(|test| {
        let (lt, stream) = (lt(test), test.stream());
        let square = rows::<f32>(64, 64);
        let mut plan = plan(
            &lt,
            &Matmul::new(square, square, square).with_epilogue(Epilogue::Bias),
        );
        let a = DeviceBuffer::filled(&stream, 64 * 64, 1.0_f32).expect("memory suffices");
        let mut bias = DeviceBuffer::filled(&stream, 64, 1.0_f32).expect("memory suffices");
        let mut d = DeviceBuffer::<f32>::zeroed(&stream, 64 * 64).expect("memory suffices");
        let mut workspace = plan.workspace(&stream).expect("memory suffices");
        let graph = Graph::capture(&test.context(), |scope| {
            let operands = Operands::new(&a, &a, &mut d)
                .with_bias(&bias)
                .with_factors(1.0, 1.0);
            plan.execute(scope, operands.with_workspace(&mut workspace))
        });
        let mut executable = graph
            .expect("the product is captured")
            .instantiate()
            .expect("the graph is valid");
        assert_eq!(
            d.to_vec().expect("it can be read"),
            vec![0.0; 64 * 64],
            "nothing runs while it is captured"
        );
        executable.launch(&stream).expect("it can be launched");
        bias.as_slice_mut().fill(10.0).expect("it is enqueued");
        drop((plan, lt, workspace, a));
        // Memory that was freed would be reused by this.
        let other = DeviceBuffer::filled(&stream, 64 * 64, 100.0_f32).expect("memory suffices");
        executable.launch(&stream).expect("it can be launched");
        assert_eq!(
            d.to_vec().expect("it can be read"),
            vec![64.0 + 1.0 + 64.0 + 10.0; 64 * 64]
        );
        drop(other);
    });
}

#[test]
fn stream_outside_the_capture_is_refused() {
    on_driver(|test| {
        let (lt, stream) = (lt(test), test.stream());
        let square = rows::<f32>(8, 8);
        let mut plan = plan(&lt, &Matmul::new(square, square, square));
        let a = DeviceBuffer::<f32>::zeroed(&stream, 64).expect("memory suffices");
        let mut d = DeviceBuffer::<f32>::zeroed(&stream, 64).expect("memory suffices");
        let mut workspace = plan.workspace(&stream).expect("memory suffices");
        let refused = Graph::capture(&test.context(), |_| {
            plan.execute(
                &stream,
                Operands::new(&a, &a, &mut d).with_workspace(&mut workspace),
            )
        });
        let error = refused
            .map(drop)
            .expect_err("the graph would not contain it")
            .to_string();
        assert!(
            error.contains("MatmulPlan::execute") && error.contains("capture scope"),
            "{error}"
        );
    });
}

#[test]
fn products_on_several_streams_wait_for_operands_and_for_a_shared_workspace() {
    on_simulator(Config::new().with_race_checks(true), |test, simulator| {
        let (lt, streams) = (lt(test), [test.stream(), test.stream(), test.stream()]);
        let square = rows::<f32>(64, 64);
        let mut plan = plan(&lt, &Matmul::new(square, square, square));
        let mut workspace = plan.workspace(&streams[0]).expect("memory suffices");
        assert!(!workspace.is_empty(), "the streams share it");
        let a = DeviceBuffer::filled(&streams[0], 64 * 64, 1.0_f32).expect("memory suffices");
        let mut results = Vec::new();
        for stream in &streams {
            let mut d = DeviceBuffer::<f32>::zeroed(&streams[0], 64 * 64).expect("memory suffices");
            let operands = Operands::new(&a, &a, &mut d).with_workspace(&mut workspace);
            plan.execute(stream, operands).expect("it is enqueued");
            results.push(d);
        }
        for d in results {
            assert_eq!(d.to_vec().expect("it can be read"), vec![64.0; 64 * 64]);
        }
        assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    });
}

#[test]
fn unordered_use_of_a_workspace_is_a_race_in_the_simulator() {
    let config = Config::new()
        .with_race_checks(true)
        .with_checks(Checks::Quiet);
    on_simulator(config, |test, simulator| {
        let (lt, stream, other) = (lt(test), test.stream(), test.stream());
        let square = rows::<f32>(64, 64);
        let mut plan = plan(&lt, &Matmul::new(square, square, square));
        let workspace = plan.workspace(&stream).expect("memory suffices");
        stream.synchronize().expect("the allocation succeeds");
        let mut kept = Vec::new();
        for stream in [&stream, &other] {
            // An operand that both use would order the streams.
            let a = DeviceBuffer::filled(stream, 64 * 64, 1.0_f32).expect("memory suffices");
            let mut d = DeviceBuffer::<f32>::zeroed(stream, 64 * 64).expect("memory suffices");
            // SAFETY: the memory lives until the end of the test; its accesses are not ordered, which the simulator finds.
            let same =
                unsafe { BorrowedBuffer::new(stream, workspace.as_pointer(), workspace.len(), ()) };
            let mut same = same.expect("the memory is there");
            plan.execute(
                stream,
                Operands::new(&a, &a, &mut d).with_workspace(&mut same),
            )
            .expect("it is enqueued");
            kept.push((a, d, same));
        }
        let _ = test.context().synchronize();
        let reports = simulator.reports();
        assert!(
            reports
                .iter()
                .any(|report| report.to_string().contains("cublasLtMatmul")),
            "{reports:?}"
        );
        simulator.reset_errors();
    });
}
