//! No operation changes the calling thread's current context.

use std::panic::{AssertUnwindSafe, catch_unwind};

use curium_driver::{Context, Result};
#[cfg(not(miri))]
use curium_sim::Config;
use curium_sys::CUcontext;
#[cfg(not(miri))]
use curium_sys::CudaVersion;
#[cfg(not(miri))]
use curium_tests::on_incomplete_simulator;
use curium_tests::{ContextStack, CreatedContext, TestDriver, driver_test};

use crate::operations::{self, Fixture};

/// The number of distinct context stacks of a caller.
pub(crate) const STACKS: usize = 5;

/// Returns these stacks, each with a description: `own` is the context of the called object.
pub(crate) fn stacks(own: CUcontext, other: CUcontext) -> [(&'static str, Vec<CUcontext>); STACKS] {
    [
        ("no context", vec![]),
        ("the same context", vec![own]),
        ("another context", vec![other]),
        ("another above the same", vec![own, other]),
        ("the same above another", vec![other, own]),
    ]
}

/// Calls `check` with each context stack of a caller.
fn with_each_stack(test: &TestDriver, own: &Context, mut check: impl FnMut(&str, &[CUcontext])) {
    let other = CreatedContext::new(&test.device());
    stacks(own.as_raw(), other.as_raw())
        .iter()
        .for_each(|(current, contexts)| check(current, contexts));
}

#[driver_test]
fn operations_do_not_change_the_context_stack(test: &TestDriver) {
    let mut fixture = Fixture::new(test);
    let context = fixture.context.clone();
    with_each_stack(test, &context, |current, contexts| {
        for (name, operation) in operations::all() {
            let stack = ContextStack::push(test.driver(), contexts);
            let outcome = operation(&mut fixture)
                .unwrap_or_else(|error| panic!("{name} with {current}: {error}"));
            stack.assert_unchanged(name);
            let stack = ContextStack::push(test.driver(), contexts);
            drop(outcome);
            stack.assert_unchanged(name);
        }
    });
}

/// Operations that may fail do not change the context stack.
#[test]
#[cfg(not(miri))]
fn operations_keep_the_stack() {
    for (index, (name, operation)) in operations::solitary()
        .into_iter()
        .flat_map(|entry| [entry; STACKS])
        .enumerate()
    {
        let newest = Config::new()
            .with_devices(2)
            .with_driver_version(CudaVersion::NEWEST_KNOWN);
        on_incomplete_simulator(newest, |test| {
            let other = CreatedContext::new(&test.device());
            let mut fixture = Fixture::new(test);
            let (current, contexts) =
                &stacks(fixture.context.as_raw(), other.as_raw())[index % STACKS];
            let stack = ContextStack::push(test.driver(), contexts);
            drop(operation(&mut fixture));
            stack.assert_unchanged(&format!("{name} with {current}"));
        });
    }
}

#[driver_test]
fn panic_within_a_context_does_not_change_the_stack(test: &TestDriver) {
    let context = test.context();
    with_each_stack(test, &context, |_, contexts| {
        let stack = ContextStack::push(test.driver(), contexts);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            context.entered(|_| -> Result<()> {
                std::panic::panic_any("this panic is part of the test")
            })
        }));
        assert!(outcome.is_err(), "the panic propagates");
        stack.assert_unchanged("Context::entered");
    });
}

/// Dropping the fixture does not change the context stack.
#[driver_test]
fn fixture_drop_keeps_the_context_stack(test: &TestDriver) {
    let keep = test.context();
    with_each_stack(test, &keep, |_, contexts| {
        let fixture = Fixture::new(test);
        let stack = ContextStack::push(test.driver(), contexts);
        drop(fixture);
        stack.assert_unchanged("dropping the fixture");
    });
}
