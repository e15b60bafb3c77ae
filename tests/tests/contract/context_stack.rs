//! The calling thread's context stack, and the only operations that change it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, ThreadId};

use curium_driver::{
    Call, CallObserver, Context, ContextKind, ContextOptions, Function, call, observe_calls,
};
use curium_memory::{PinnedBuffer, PinnedFlags};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, driver_test, on_driver, resume_panic};
use parking_lot::Mutex;

fn contexts(test: &TestDriver) -> TestResult<(Context, Context)> {
    let created = test.device().create_context(ContextOptions::new())?;
    Ok((test.context(), created))
}

fn current(test: &TestDriver) -> TestResult<curium_sys::CUcontext> {
    Ok(Context::current_raw(test.driver())?)
}

#[driver_test]
fn pushed_contexts_are_popped_in_reverse(test: &TestDriver) -> TestResult {
    let (first, second) = contexts(test)?;
    first.push()?;
    second.push()?;
    assert!(second.is_current()? && !first.is_current()?);
    assert_eq!(Context::pop(test.driver())?, second.as_raw());
    assert!(first.is_current()?);
    assert_eq!(Context::pop(test.driver())?, first.as_raw());
    let error = Context::pop(test.driver()).expect_err("the stack is empty");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    Ok(())
}

/// A context is current until the result of enter is dropped.
#[driver_test]
fn context_is_current_until_the_guard_drops(test: &TestDriver) -> TestResult {
    let (first, second) = contexts(test)?;
    let before = current(test)?;
    let outer = first.enter()?;
    {
        let _inner = second.enter()?;
        assert_eq!(current(test)?, second.as_raw());
        let _same = second.enter()?;
        assert_eq!(current(test)?, second.as_raw());
    }
    assert_eq!(current(test)?, first.as_raw());
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _inner = second.enter();
        panic!("while a context is entered");
    }));
    assert!(unwound.is_err());
    assert_eq!(current(test)?, first.as_raw(), "unwinding drops the result");
    drop(outer);
    assert_eq!(current(test)?, before);
    Ok(())
}

#[driver_test]
fn set_current_replaces_the_top(test: &TestDriver) -> TestResult {
    let (first, second) = contexts(test)?;
    first.push()?;
    second.set_current()?;
    assert_eq!(current(test)?, second.as_raw());
    Context::unset_current(test.driver())?;
    assert!(current(test)?.is_null(), "the stack had one context");
    Ok(())
}

#[driver_test]
fn current_context_is_borrowed(test: &TestDriver) -> TestResult {
    let (first, _) = contexts(test)?;
    assert!(
        // SAFETY: there is no context.
        unsafe { Context::current(test.driver()) }?.is_none()
    );
    first.scoped(|| -> TestResult {
        // SAFETY: `first` outlives the scope.
        let current = unsafe { Context::current(test.driver()) }?;
        let current = current.ok_or("no current context")?;
        assert_eq!(current.as_raw(), first.as_raw());
        assert_eq!(current.kind(), ContextKind::Borrowed);
        assert_eq!(current.device().as_raw(), test.device().as_raw());
        current.stream()?.synchronize()?;
        Ok(())
    })?
}

#[driver_test]
fn scope_gives_back_its_value_and_restores_the_stack(test: &TestDriver) -> TestResult {
    let (first, second) = contexts(test)?;
    let value = first.scoped(|| -> TestResult<bool> {
        assert_eq!(current(test)?, first.as_raw());
        let inner = second.scoped(|| current(test))??;
        Ok(inner == second.as_raw())
    })?;
    assert!(value?);
    assert!(current(test)?.is_null());
    Ok(())
}

#[driver_test]
fn scope_restores_the_stack_when_it_panics(test: &TestDriver) -> TestResult {
    let (first, second) = contexts(test)?;
    first.push()?;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        second.scoped(|| -> () { std::panic::panic_any("this panic is part of the test") })
    }));
    assert!(outcome.is_err(), "the panic propagates");
    assert_eq!(current(test)?, first.as_raw());
    Context::pop(test.driver())?;
    Ok(())
}

#[driver_test]
fn scope_pops_the_contexts_that_other_code_pushed(test: &TestDriver) -> TestResult {
    let (first, second) = contexts(test)?;
    first.push()?;
    // The same context is already current, and the context pushed within the scope is popped at its
    // end.
    // SAFETY: the context is live.
    first.scoped(|| unsafe { call!(test.driver(), cuCtxSetCurrent(second.as_raw())) })??;
    assert_eq!(current(test)?, first.as_raw());
    Context::pop(test.driver())?;
    Ok(())
}

/// A context that was current on another thread can be destroyed.
#[driver_test]
fn context_current_on_another_thread_is_destroyed(test: &TestDriver) -> TestResult {
    let (_, created) = contexts(test)?;
    created.set_current()?;
    drop(created);
    assert!(
        current(test)?.is_null(),
        "the driver removes a destroyed context from the stack"
    );
    Ok(())
}

/// One context serves many threads and each thread may have its own.
#[driver_test]
fn threads_share_or_own_contexts(test: &TestDriver) -> TestResult {
    let context = test.context();
    thread::scope(|scope| -> TestResult {
        let mut threads = Vec::new();
        for _ in 0..4 {
            threads.push(scope.spawn(|| -> TestResult {
                context.set_current()?;
                context.stream()?.synchronize()?;
                Ok(())
            }));
            threads.push(scope.spawn(|| -> TestResult {
                let (_, created) = contexts(test)?;
                created.stream()?.synchronize()?;
                Ok(())
            }));
        }
        for thread in threads {
            resume_panic(thread.join())?;
        }
        Ok(())
    })?;
    context.synchronize()?;
    Ok(())
}

/// An observer of calls does not change the current context.
#[test]
fn observer_keeps_the_context() -> TestResult {
    struct Switching(Context, Mutex<Vec<Option<String>>>, ThreadId);

    impl CallObserver for Switching {
        fn before(&self, _: Function) {
            if thread::current().id() == self.2 {
                let driver = self.0.driver();
                let pop = Context::pop(driver).map(drop);
                let results = [
                    self.0.set_current(),
                    Context::unset_current(driver),
                    self.0.push(),
                    pop,
                ];
                let errors = results.map(|result| result.err().map(|error| error.to_string()));
                self.1.lock().extend(errors);
            }
        }

        fn after(&self, _: &Call<'_>) {}
    }

    on_driver(|test| -> TestResult {
        let (context, other) = contexts(test)?;
        let observer = Arc::new(Switching(
            other.clone(),
            Mutex::default(),
            thread::current().id(),
        ));
        let guard = observe_calls(Shared(Arc::clone(&observer)));
        let pinned = PinnedBuffer::<u8>::zeroed(&context, 64, PinnedFlags::empty());
        drop(guard);
        assert!(current(test)?.is_null(), "the stack is unchanged");
        let errors = observer.1.lock().clone();
        assert!(
            !errors.is_empty() && errors.iter().all(Option::is_some),
            "{errors:?}"
        );
        assert!(
            errors
                .iter()
                .flatten()
                .all(|error| error.contains("observer")),
            "{errors:?}"
        );
        drop((observer, other));
        assert_eq!(*pinned?, [0; 64], "the memory belongs to the first context");
        Ok(())
    })?;

    struct Shared<T>(Arc<T>);

    impl<T: CallObserver> CallObserver for Shared<T> {
        fn before(&self, function: Function) {
            self.0.before(function);
        }

        fn after(&self, call: &Call<'_>) {
            self.0.after(call);
        }
    }
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Context;

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("Context::is_current", |fixture| {
            made(fixture.context.is_current()?)
        }),
        ("Context::current_raw", |fixture| {
            made(Context::current_raw(&fixture.driver)?)
        }),
        ("Context::current", |fixture| {
            // SAFETY: the current context outlives the operation.
            made(unsafe { Context::current(&fixture.driver) }?)
        }),
        ("Context::scoped", |fixture| {
            made(fixture.context.scoped(|| ())?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
