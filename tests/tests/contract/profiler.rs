//! [`Profiling`](curium_driver::Profiling): profiler ranges.

use curium_driver::Function;
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

#[driver_test]
fn profiler_is_started_and_stopped_once(test: &TestDriver) -> TestResult {
    let context = test.context();
    let profiling = test.assert_calls(Function::cuProfilerStart, 1, || context.profile());
    let profiling = profiling?;
    test.assert_calls(Function::cuProfilerStop, 1, || profiling.close())?;
    let profiling = context.profile()?;
    test.assert_calls(Function::cuProfilerStop, 1, || drop(profiling));
    Ok(())
}

#[simulator_test]
fn profiler_that_does_not_stop_is_given_back(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let profiling = test.context().profile()?;
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
    use crate::operations::{Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Context::profile", |fixture| {
            made(fixture.context.profile()?)
        }),
        ("Profiling::close", |fixture| {
            fixture
                .context
                .profile()?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
