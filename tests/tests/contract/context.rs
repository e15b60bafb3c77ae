//! [`Context`](curium_driver::Context): the primary context and its release.

use curium_driver::{Error, Event, EventFlags, Function};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{Gate, on_driver, on_simulator};

#[test]
fn primary_context_is_one_for_all_retentions() {
    on_driver(|test| {
        let (first, second) = (test.context(), test.context());
        assert_eq!(first.as_raw(), second.as_raw());
        assert_eq!(first, first.clone());
        assert_eq!(first.device().as_raw(), test.device().as_raw());
        drop(first);
        second
            .synchronize()
            .expect("the other retention keeps the context");
    });
}

#[test]
fn context_lives_until_its_last_retention_ends() {
    on_simulator(Config::new(), |test, simulator| {
        let (first, second) = (test.context(), test.context());
        drop(first);
        assert_eq!(simulator.live_handles().contexts, 1);
        drop(second);
        assert_eq!(simulator.live_handles().contexts, 0);
        assert_eq!(simulator.calls(Function::cuDevicePrimaryCtxRelease_v2), 2);
    });
}

#[test]
fn context_is_retained_once_however_many_clones_there_are() {
    on_driver(|test| {
        test.assert_calls(Function::cuDevicePrimaryCtxRelease_v2, 1, || {
            let clones: Vec<_> = std::iter::repeat_n(test.context(), 8).collect();
            drop(clones);
        });
    });
}

#[test]
fn context_synchronize_waits_for_every_stream() {
    on_driver(|test| {
        let context = test.context();
        let stream = context.stream().expect("a stream can be created");
        let event =
            Event::new(&context, EventFlags::DISABLE_TIMING).expect("an event can be created");
        let gate = Gate::on(&stream);
        event.record(&stream).expect("an event can be recorded");
        assert!(!event.is_finished().expect("an event can be queried"));
        gate.open();
        context.synchronize().expect("the context works");
        assert!(
            event.is_finished().expect("an event can be queried"),
            "synchronize returned before the work was done"
        );
    });
}

#[test]
fn context_synchronize_with_nothing_to_do_returns() {
    on_driver(|test| test.context().synchronize().expect("the context works"));
}

#[test]
fn context_memory_shrinks_by_what_is_allocated() {
    on_simulator(Config::new().with_memory_budget(1 << 24), |test, _| {
        let context = test.context();
        let stream = context.stream().expect("a stream can be created");
        let before = context.memory_info().expect("a context reports memory");
        assert_eq!(before.total, 1 << 24);
        let buffer = DeviceBuffer::<u8>::zeroed(&stream, 1 << 20).expect("memory suffices");
        let after = context.memory_info().expect("a context reports memory");
        assert!(before.free - after.free >= 1 << 20, "{before:?} {after:?}");
        drop(buffer);
    });
}

#[test]
fn context_in_use_is_given_back_by_close() {
    on_driver(|test| {
        let context = test.context();
        let stream = context.stream().expect("a stream can be created");
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
        context.close().expect("nothing keeps the context any more");
    });
}

#[test]
fn context_that_the_driver_does_not_release_is_given_back_by_close() {
    on_simulator(Config::new(), |test, simulator| {
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
        context.synchronize().expect("the context is still there");
        context.close().expect("only the first call failed");
    });
}

#[test]
fn context_is_used_from_many_threads_at_once() {
    on_driver(|test| {
        let context = test.context();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..8 {
                        let stream = context.stream().expect("a stream can be created");
                        let event = Event::new(&context, EventFlags::empty())
                            .expect("an event can be created");
                        event.record(&stream).expect("an event can be recorded");
                        event.synchronize().expect("an event can be synchronized");
                    }
                });
            }
        });
    });
}

pub(crate) mod operations {
    use crate::operations::{Operation, boxed, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
}
