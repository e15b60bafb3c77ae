//! Plans in captures and on several streams.

use curium_blas::lt::{Epilogue, Matmul, Operands};
use curium_driver::Graph;
use curium_memory::{BorrowedBuffer, DeviceBuffer};
use curium_sim::{Checks, Config, Simulator};
use curium_tests::{TestDriver, TestResult, driver_test, on_simulator, simulator_test};

use super::{lt, plan, rows};

/// A graph keeps operands workspace and handle of a plan that is dropped.
#[driver_test]
fn graph_keeps_the_resources_that_its_plan_used(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let square = rows::<f32>(64, 64);
    let mut plan = plan(
        &lt,
        &Matmul::new(square, square, square).with_epilogue(Epilogue::Bias),
    );
    let a = DeviceBuffer::filled(&stream, 64 * 64, 1.0_f32)?;
    let mut bias = DeviceBuffer::filled(&stream, 64, 1.0_f32)?;
    let mut d = DeviceBuffer::<f32>::zeroed(&stream, 64 * 64)?;
    let mut workspace = plan.workspace(&stream)?;
    let graph = Graph::capture(&test.context(), |scope| {
        let operands = Operands::new(&a, &a, &mut d)
            .with_bias(&bias)
            .with_factors(1.0, 1.0);
        plan.execute(scope, operands.with_workspace(&mut workspace))
    });
    let mut executable = graph?.instantiate()?;
    assert_eq!(
        d.to_vec()?,
        vec![0.0; 64 * 64],
        "nothing runs while it is captured"
    );
    executable.launch(&stream)?;
    bias.fill(10.0)?;
    drop((plan, lt, workspace, a));
    // Memory that was freed would be reused by this.
    let other = DeviceBuffer::filled(&stream, 64 * 64, 100.0_f32)?;
    executable.launch(&stream)?;
    assert_eq!(d.to_vec()?, vec![64.0 + 1.0 + 64.0 + 10.0; 64 * 64]);
    drop(other);
    Ok(())
}

#[driver_test]
fn stream_outside_the_capture_is_refused(test: &TestDriver) -> TestResult {
    let lt = lt(test);
    let stream = test.stream();
    let square = rows::<f32>(8, 8);
    let mut plan = plan(&lt, &Matmul::new(square, square, square));
    let a = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
    let mut d = DeviceBuffer::<f32>::zeroed(&stream, 64)?;
    let mut workspace = plan.workspace(&stream)?;
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
    Ok(())
}

/// Products on several streams wait for operands and for a shared workspace.
#[simulator_test(Config::new().with_race_checks(true))]
fn products_wait_for_operands_and_workspace(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let lt = lt(test);
    let streams = [test.stream(), test.stream(), test.stream()];
    let square = rows::<f32>(64, 64);
    let mut plan = plan(&lt, &Matmul::new(square, square, square));
    let mut workspace = plan.workspace(&streams[0])?;
    assert!(!workspace.is_empty(), "the streams share it");
    let a = DeviceBuffer::filled(&streams[0], 64 * 64, 1.0_f32)?;
    let mut results = Vec::new();
    for stream in &streams {
        let mut d = DeviceBuffer::<f32>::zeroed(&streams[0], 64 * 64)?;
        let operands = Operands::new(&a, &a, &mut d).with_workspace(&mut workspace);
        plan.execute(stream, operands)?;
        results.push(d);
    }
    for d in results {
        assert_eq!(d.to_vec()?, vec![64.0; 64 * 64]);
    }
    assert!(simulator.reports().is_empty(), "{:?}", simulator.reports());
    Ok(())
}

/// Unordered use of a workspace is a race in the simulator.
#[test]
fn unordered_workspace_use_is_a_race() -> TestResult {
    let config = Config::new()
        .with_race_checks(true)
        .with_checks(Checks::Quiet);
    on_simulator(config, |test, simulator| -> TestResult {
        let lt = lt(test);
        let stream = test.stream();
        let other = test.stream();
        let square = rows::<f32>(64, 64);
        let mut plan = plan(&lt, &Matmul::new(square, square, square));
        let workspace = plan.workspace(&stream)?;
        stream.synchronize()?;
        let mut executables = Vec::new();
        for stream in [&stream, &other] {
            // An operand that both use would order the streams.
            let a = DeviceBuffer::filled(stream, 64 * 64, 1.0_f32)?;
            let mut d = DeviceBuffer::<f32>::zeroed(stream, 64 * 64)?;
            // SAFETY: the memory lives until the end of the test; its accesses are not ordered,
            // which the simulator finds.
            let mut same = unsafe {
                BorrowedBuffer::new(stream, workspace.as_pointer(), workspace.len(), ())
            }?;
            plan.execute(
                stream,
                Operands::new(&a, &a, &mut d).with_workspace(&mut same),
            )?;
            executables.push((a, d, same));
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
        Ok(())
    })?;
    Ok(())
}
