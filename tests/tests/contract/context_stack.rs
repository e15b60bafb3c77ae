//! The calling thread's context stack, and the only operations that change it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use curium_driver::{
    Call, CallObserver, Context, ContextKind, ContextOptions, Function, call, observe_calls,
};
use curium_memory::{PinnedBuffer, PinnedFlags};
use curium_sys::CUresult;
use curium_tests::{TestDriver, on_driver};

fn contexts(test: &TestDriver) -> (Context, Context) {
    let created = test
        .device()
        .create_context(ContextOptions::new())
        .expect("a context can be created");
    (test.context(), created)
}

fn current(test: &TestDriver) -> curium_sys::CUcontext {
    Context::current_raw(test.driver()).expect("the thread has a stack")
}

#[test]
fn pushed_contexts_are_popped_in_reverse() {
    on_driver(|test| {
        let (first, second) = contexts(test);
        first.push().expect("a context can be pushed");
        second.push().expect("a context can be pushed");
        assert!(
            second.is_current().expect("it can be queried")
                && !first.is_current().expect("it can be queried")
        );
        assert_eq!(
            Context::pop(test.driver()).expect("the context exists"),
            second.as_raw()
        );
        assert!(first.is_current().expect("it can be queried"));
        assert_eq!(
            Context::pop(test.driver()).expect("the context exists"),
            first.as_raw()
        );
        let error = Context::pop(test.driver()).expect_err("the stack is empty");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    });
}

#[test]
fn context_is_current_until_the_result_of_enter_is_dropped() {
    on_driver(|test| {
        let (first, second) = contexts(test);
        let before = current(test);
        let outer = first.enter().expect("a context can be entered");
        {
            let _inner = second.enter().expect("a context can be entered");
            assert_eq!(current(test), second.as_raw());
            let _same = second.enter().expect("the current context can be entered");
            assert_eq!(current(test), second.as_raw());
        }
        assert_eq!(current(test), first.as_raw());
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _inner = second.enter().expect("a context can be entered");
            panic!("while a context is entered");
        }));
        assert!(unwound.is_err());
        assert_eq!(current(test), first.as_raw(), "unwinding drops the result");
        drop(outer);
        assert_eq!(current(test), before);
    });
}

#[test]
fn set_current_takes_the_place_of_the_top() {
    on_driver(|test| {
        let (first, second) = contexts(test);
        first.push().expect("a context can be pushed");
        second.set_current().expect("a context can be current");
        assert_eq!(current(test), second.as_raw());
        Context::unset_current(test.driver()).expect("no context can be current");
        assert!(current(test).is_null(), "the stack had one context");
    });
}

#[test]
fn current_context_is_borrowed() {
    on_driver(|test| {
        let (first, _) = contexts(test);
        assert!(
            // SAFETY: there is no context.
            unsafe { Context::current(test.driver()) }
                .expect("it can be queried")
                .is_none()
        );
        first
            .scoped(|| {
                // SAFETY: `first` outlives the scope.
                let current =
                    unsafe { Context::current(test.driver()) }.expect("it can be queried");
                let current = current.expect("a context is current");
                assert_eq!(
                    (current.as_raw(), current.kind()),
                    (first.as_raw(), ContextKind::Borrowed)
                );
                assert_eq!(current.device().as_raw(), test.device().as_raw());
                current
                    .stream()
                    .expect("a stream can be created")
                    .synchronize()
                    .expect("the stream works");
            })
            .expect("a context can be pushed");
    });
}

#[test]
fn scope_gives_back_its_value_and_restores_the_stack() {
    on_driver(|test| {
        let (first, second) = contexts(test);
        let value = first.scoped(|| {
            assert_eq!(current(test), first.as_raw());
            second
                .scoped(|| current(test) == second.as_raw())
                .expect("a context can be pushed")
        });
        assert!(value.expect("a context can be pushed"));
        assert!(current(test).is_null());
    });
}

#[test]
fn scope_restores_the_stack_when_it_panics() {
    on_driver(|test| {
        let (first, second) = contexts(test);
        first.push().expect("a context can be pushed");
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            second.scoped(|| -> () { std::panic::panic_any("this panic is part of the test") })
        }));
        assert!(outcome.is_err(), "the panic propagates");
        assert_eq!(current(test), first.as_raw());
        Context::pop(test.driver()).expect("the context exists");
    });
}

#[test]
fn scope_pops_the_contexts_that_other_code_pushed() {
    on_driver(|test| {
        let (first, second) = contexts(test);
        first.push().expect("a context can be pushed");
        // The same context is already current, and the context pushed within the scope is popped at its end.
        first
            .scoped(|| {
                // SAFETY: the context is live.
                unsafe { call!(test.driver(), cuCtxSetCurrent(second.as_raw())) }
                    .expect("a context can be current");
            })
            .expect("a context can be pushed");
        assert_eq!(current(test), first.as_raw());
        Context::pop(test.driver()).expect("the context exists");
    });
}

#[test]
fn context_that_was_current_on_another_thread_can_be_destroyed() {
    on_driver(|test| {
        let (_, created) = contexts(test);
        created.set_current().expect("a context can be current");
        drop(created);
        assert!(
            current(test).is_null(),
            "the driver removes a destroyed context from the stack"
        );
    });
}

#[test]
fn one_context_serves_many_threads_and_each_thread_may_have_its_own() {
    on_driver(|test| {
        let context = test.context();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    context
                        .set_current()
                        .expect("a context can be current on several threads");
                    context
                        .stream()
                        .expect("a stream can be created")
                        .synchronize()
                        .expect("it works");
                });
                scope.spawn(|| {
                    let (_, own) = contexts(test);
                    own.stream()
                        .expect("a stream can be created")
                        .synchronize()
                        .expect("it works");
                });
            }
        });
        context
            .synchronize()
            .expect("the context outlives the threads");
    });
}

#[test]
fn observer_of_calls_does_not_change_the_current_context() {
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
                self.1.lock().expect("no thread panics").extend(errors);
            }
        }

        fn after(&self, _: &Call<'_>) {}
    }

    on_driver(|test| {
        let (context, other) = contexts(test);
        let observer = Arc::new(Switching(
            other.clone(),
            Mutex::default(),
            thread::current().id(),
        ));
        let guard = observe_calls(Shared(Arc::clone(&observer)));
        let pinned = PinnedBuffer::<u8>::zeroed(&context, 64, PinnedFlags::empty());
        drop(guard);
        assert!(current(test).is_null(), "the stack is unchanged");
        let errors = observer.1.lock().expect("no thread panics").clone();
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
        assert_eq!(
            *pinned.expect("memory suffices"),
            [0; 64],
            "the memory belongs to the first context"
        );
    });

    struct Shared<T>(Arc<T>);

    impl<T: CallObserver> CallObserver for Shared<T> {
        fn before(&self, function: Function) {
            self.0.before(function);
        }

        fn after(&self, call: &Call<'_>) {
            self.0.after(call);
        }
    }
}

pub(crate) mod operations {
    use curium_driver::Context;

    use crate::operations::{Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
}
