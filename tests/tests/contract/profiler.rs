//! [`Profiling`](curium_driver::Profiling): profiler ranges.

use curium_driver::Function;
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{on_driver, on_simulator};

#[test]
fn profiler_is_started_and_stopped_once() {
    on_driver(|test| {
        let context = test.context();
        let profiling = test.assert_calls(Function::cuProfilerStart, 1, || context.profile());
        let profiling = profiling.expect("the profiler starts");
        test.assert_calls(Function::cuProfilerStop, 1, || profiling.close())
            .expect("it stops");
        let profiling = context.profile().expect("the profiler starts again");
        test.assert_calls(Function::cuProfilerStop, 1, || drop(profiling));
    });
}

#[test]
fn profiler_that_does_not_stop_is_given_back() {
    on_simulator(Config::new(), |test, simulator| {
        let profiling = test.context().profile().expect("the profiler starts");
        simulator.inject(
            Fault::on(Function::cuProfilerStop).returns(CUresult::CUDA_ERROR_NOT_PERMITTED),
        );
        let (profiling, error) = profiling
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(Function::cuProfilerStop));
        test.assert_calls(Function::cuProfilerStop, 1, || drop(profiling));
    });
}

pub(crate) mod operations {
    use crate::operations::{Operation, boxed, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
}
