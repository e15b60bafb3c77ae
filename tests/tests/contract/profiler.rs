//! [`Profiling`]: profiler ranges.

use curium_diagnostics::Profiling;
use curium_driver::Function;
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

#[driver_test]
fn profiler_is_started_and_stopped_once(test: &TestDriver) -> TestResult {
    let context = test.context();
    let profiling =
        test.assert_calls(Function::cuProfilerStart, 1, || Profiling::start(&context))?;
    test.assert_calls(Function::cuProfilerStop, 1, || profiling.close())?;
    let profiling = Profiling::start(&context)?;
    test.assert_calls(Function::cuProfilerStop, 1, || drop(profiling));
    Ok(())
}

#[simulator_test]
fn profiler_that_does_not_stop_is_given_back(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let profiling = Profiling::start(&test.context())?;
    simulator
        .inject(Fault::on(Function::cuProfilerStop).returns(CUresult::CUDA_ERROR_NOT_PERMITTED));
    let (profiling, error) = profiling
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuProfilerStop));
    test.assert_calls(Function::cuProfilerStop, 1, || drop(profiling));
    Ok(())
}

pub(crate) mod operations {
    use curium_diagnostics::Profiling;

    use crate::operations::{Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Profiling::start", |fixture| {
            made(Profiling::start(&fixture.context)?)
        }),
        ("Profiling::close", |fixture| {
            Profiling::start(&fixture.context)?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
