//! [`Context`](curium_driver::Context): the primary context and its release.

use curium_driver::{Error, Event, EventFlags, Function};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, simulator_test};

#[driver_test]
fn primary_context_is_one_for_all_retentions(test: &TestDriver) -> TestResult {
    let first = test.context();
    let second = test.context();
    assert_eq!(first.as_raw(), second.as_raw());
    assert_eq!(first, first.clone());
    assert_eq!(first.device().as_raw(), test.device().as_raw());
    drop(first);
    second.synchronize()?;
    Ok(())
}

#[simulator_test]
fn context_lives_until_its_last_retention_ends(test: &TestDriver, simulator: &Simulator) {
    let first = test.context();
    let second = test.context();
    drop(first);
    assert_eq!(simulator.live_handles().contexts, 1);
    drop(second);
    assert_eq!(simulator.live_handles().contexts, 0);
    assert_eq!(simulator.calls(Function::cuDevicePrimaryCtxRelease_v2), 2);
}

/// A context is retained once however many clones there are.
#[driver_test]
fn clones_retain_the_context_once(test: &TestDriver) {
    test.assert_calls(Function::cuDevicePrimaryCtxRelease_v2, 1, || {
        let clones: Vec<_> = std::iter::repeat_n(test.context(), 8).collect();
        drop(clones);
    });
}

#[driver_test]
fn context_synchronize_waits_for_every_stream(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = context.stream()?;
    let event = Event::new(&context, EventFlags::DISABLE_TIMING)?;
    let gate = Gate::on(&stream);
    event.record(&stream)?;
    assert!(!event.is_finished()?);
    gate.open();
    context.synchronize()?;
    assert!(
        event.is_finished()?,
        "synchronize returned before the work was done"
    );
    Ok(())
}

#[driver_test]
fn context_synchronize_with_nothing_to_do_returns(test: &TestDriver) -> TestResult {
    test.context().synchronize()?;
    Ok(())
}

#[simulator_test(Config::new().with_memory_budget(1 << 24))]
fn context_memory_shrinks_by_what_is_allocated(test: &TestDriver, _: &Simulator) -> TestResult {
    let context = test.context();
    let stream = context.stream()?;
    let before = context.memory_info()?;
    assert_eq!(before.total, 1 << 24);
    let buffer = DeviceBuffer::<u8>::zeroed(&stream, 1 << 20)?;
    let after = context.memory_info()?;
    assert!(before.free - after.free >= 1 << 20, "{before:?} {after:?}");
    drop(buffer);
    Ok(())
}

#[driver_test]
fn context_in_use_is_given_back_by_close(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = context.stream()?;
    let (context, error) = context
        .close()
        .expect_err("the stream keeps the context")
        .into_parts();
    assert!(matches!(error, Error::Argument(_)), "{error}");
    assert_eq!(
        error.to_string(),
        "Context::close: the context is still in use"
    );
    drop(stream);
    context.close()?;
    Ok(())
}

/// A context that the driver does not release is returned by close.
#[simulator_test]
fn close_returns_an_unreleased_context(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let context = test.context();
    simulator.inject(
        Fault::on(Function::cuDevicePrimaryCtxRelease_v2)
            .returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let (context, error) = context
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(
        error.function(),
        Some(Function::cuDevicePrimaryCtxRelease_v2)
    );
    context.synchronize()?;
    context.close()?;
    Ok(())
}

#[driver_test]
fn context_is_used_from_many_threads_at_once(test: &TestDriver) {
    let context = test.context();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..8 {
                    let stream = context.stream().expect("failed to create a stream");
                    let event = Event::new(&context, EventFlags::empty())
                        .expect("failed to create an event");
                    event.record(&stream).expect("record failed");
                    event.synchronize().expect("synchronization failed");
                }
            });
        }
    });
}

pub(crate) mod operations {
    use crate::operations::{Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("Context::stream", |fixture| made(fixture.context.stream()?)),
        ("Context::synchronize", |fixture| {
            made(fixture.context.synchronize()?)
        }),
        ("Context::memory_info", |fixture| {
            made(fixture.context.memory_info()?)
        }),
        ("Context::close", |fixture| {
            fixture
                .device
                .primary_context()?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
