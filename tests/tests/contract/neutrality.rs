//! No operation changes the calling thread's current context.

use std::panic::{AssertUnwindSafe, catch_unwind};

use curium_driver::{Context, Result};
use curium_sys::CUcontext;
use curium_tests::{ContextStack, CreatedContext, TestDriver, on_driver};

use crate::operations::{self, Fixture};

/// Calls `check` with each stack of contexts that a caller may have: none, the operation's own, another, and several.
pub(crate) fn with_each_stack(test: &TestDriver, own: &Context, mut check: impl FnMut(&str, &[CUcontext])) {
    let other = CreatedContext::new(&test.device());
    let (own, other) = (own.as_raw(), other.as_raw());
    check("no context", &[]);
    check("the same context", &[own]);
    check("another context", &[other]);
    check("another above the same", &[own, other]);
    check("the same above another", &[other, own]);
}

#[test]
fn operations_leave_the_context_stack_as_it_was() {
    on_driver(|test| {
        let mut fixture = Fixture::new(test);
        let context = fixture.context.clone();
        with_each_stack(test, &context, |current, contexts| {
            for (name, operation) in operations::all() {
                let stack = ContextStack::push(test.driver(), contexts);
                let made = operation(&mut fixture).unwrap_or_else(|error| panic!("{name} with {current}: {error}"));
                stack.assert_unchanged();
                let stack = ContextStack::push(test.driver(), contexts);
                drop(made);
                stack.assert_unchanged();
            }
        });
    });
}

#[test]
fn panic_within_a_context_leaves_the_stack_as_it_was() {
    on_driver(|test| {
        let context = test.context();
        with_each_stack(test, &context, |_, contexts| {
            let stack = ContextStack::push(test.driver(), contexts);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                context.entered(|_| -> Result<()> { std::panic::panic_any("this panic is part of the test") })
            }));
            assert!(outcome.is_err(), "the panic goes on");
            stack.assert_unchanged();
        });
    });
}

#[test]
fn dropping_the_fixture_leaves_the_stack_as_it_was() {
    on_driver(|test| {
        let keep = test.context();
        with_each_stack(test, &keep, |_, contexts| {
            let fixture = Fixture::new(test);
            let stack = ContextStack::push(test.driver(), contexts);
            drop(fixture);
            stack.assert_unchanged();
        });
    });
}
