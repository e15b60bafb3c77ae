//! Green contexts: disjoint parts of a device's multiprocessors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use curium_driver::{
    Context, ContextKind, Device, Error, Event, EventFlags, Function, GreenContextFlags,
    GreenContextOptions, Multiprocessors, Partition, RawContext, SplitFlags, Stream, StreamFlags,
    StreamOptions, WorkQueueScope,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{Gate, TestDriver, on_driver, on_simulator};

fn all(test: &TestDriver) -> Multiprocessors {
    test.device()
        .multiprocessors()
        .expect("a device has multiprocessors")
}

/// Returns a green context on the first of two parts.
fn green(device: &Device) -> Context {
    let all = device
        .multiprocessors()
        .expect("a device has multiprocessors");
    let split = all
        .split(2, 16, SplitFlags::empty())
        .expect("there is room for two parts");
    let part = split.parts.into_iter().next().expect("there are parts");
    device
        .green_context(GreenContextOptions::new(part))
        .expect("a green context can be created")
}

#[test]
fn split_gives_parts_of_one_size_and_the_rest() {
    on_driver(|test| {
        let total = all(test).count();
        let split = all(test)
            .split(3, 10, SplitFlags::empty())
            .expect("there is room for three parts");
        assert_eq!(split.parts.len(), 3);
        let size = split.parts[0].count();
        assert!(
            size >= 10 && split.parts.iter().all(|part| part.count() == size),
            "{split:?}"
        );
        let rest = split.remainder.as_ref().map_or(0, Multiprocessors::count);
        assert_eq!(3 * size + rest, total, "{split:?}");
    });
}

#[test]
fn split_gives_fewer_parts_where_there_is_no_room() {
    on_driver(|test| {
        let possible = all(test)
            .max_parts(32, SplitFlags::empty())
            .expect("parts can be counted");
        let split = all(test)
            .split(1000, 32, SplitFlags::empty())
            .expect("there is room for one part");
        assert_eq!(split.parts.len(), possible as usize);
        let whole = all(test)
            .split(1, all(test).count(), SplitFlags::empty())
            .expect("there is room for all");
        assert!(whole.remainder.is_none(), "{whole:?}");
    });
}

#[test]
fn smaller_parts_are_had_by_giving_up_clusters() {
    on_driver(|test| {
        let apart = all(test)
            .split(4, 1, SplitFlags::IGNORE_COSCHEDULING)
            .expect("there is room");
        let together = all(test)
            .split(4, 1, SplitFlags::empty())
            .expect("there is room");
        assert!(
            apart.parts[0].count() <= together.parts[0].count(),
            "{apart:?} {together:?}"
        );
    });
}

#[test]
fn impossible_split_is_an_error_with_the_counts() {
    on_driver(|test| {
        let total = all(test).count();
        let error = all(test)
            .split(1, total + 1, SplitFlags::empty())
            .expect_err("the number is too large");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
        );
        let text = format!("1 parts of {} of {total} multiprocessors", total + 1);
        assert!(error.to_string().contains(&text), "{error}");
        let both = SplitFlags::IGNORE_COSCHEDULING | SplitFlags::MAX_CLUSTER_SIZE;
        let error = all(test)
            .split(2, 16, both)
            .expect_err("the flags are mutually exclusive");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        let error = all(test)
            .split(0, 16, SplitFlags::empty())
            .expect_err("no parts");
        assert!(matches!(error, Error::Argument(_)), "{error}");
    });
}

#[test]
fn part_is_split_again_only_once_it_is_in_a_context() {
    on_driver(|test| {
        let split = all(test)
            .split(1, 16, SplitFlags::empty())
            .expect("there is room");
        let part = split.parts.into_iter().next().expect("there is a part");
        let error = part
            .split(2, 8, SplitFlags::empty())
            .expect_err("it is in no context");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
        );
        let context = green(&test.device());
        let inner = context
            .multiprocessors()
            .expect("a context has multiprocessors");
        assert_eq!(inner.count(), 16);
        let split = inner
            .split(1, 8, SplitFlags::empty())
            .expect("there is room for half");
        assert_eq!(
            split.parts[0].count() + split.remainder.expect("half is free").count(),
            16
        );
    });
}

#[test]
fn green_context_is_current_on_no_thread_and_supports_every_operation() {
    on_driver(|test| {
        let primary = test.context();
        let context = green(&test.device());
        assert!(
            Context::current_raw(test.driver())
                .expect("the thread has a stack")
                .is_null()
        );
        assert_eq!(context.kind(), ContextKind::Green);
        let stream = context.stream().expect("a stream can be created");
        assert_eq!(
            Some(stream.green_context_raw().expect("it can be queried")),
            context.green_raw()
        );
        let buffer = DeviceBuffer::from_slice(&stream, &[1_u32, 2, 3]).expect("memory suffices");
        let outside = primary.stream().expect("a stream can be created");
        assert!(
            outside
                .green_context_raw()
                .expect("it can be queried")
                .is_null()
        );
        let mut copy = DeviceBuffer::<u32>::zeroed(&outside, 3).expect("memory suffices");
        copy.copy_from_device(&buffer)
            .expect("a green context shares the memory of the primary context");
        assert_eq!(copy.to_vec().expect("the buffer can be read"), [1, 2, 3]);
        context.synchronize().expect("the context works");
    });
}

#[test]
fn green_context_keeps_the_primary_one() {
    on_simulator(Config::new(), |test, _| {
        let is_active = || {
            test.device()
                .primary_state()
                .expect("it can be read")
                .is_active
        };
        let context = green(&test.device());
        assert!(is_active());
        let stream = context.stream().expect("a stream can be created");
        drop(context);
        stream.synchronize().expect("the stream keeps its context");
        drop(stream);
        assert!(!is_active());
    });
}

#[test]
fn green_contexts_have_numbers_of_their_own() {
    on_driver(|test| {
        let (first, second) = (green(&test.device()), green(&test.device()));
        let number = |context: &Context| {
            context
                .green_id()
                .expect("it can be queried")
                .expect("the context is green")
        };
        assert_ne!(number(&first), number(&second));
        assert_ne!(
            first.id().expect("a context has a number"),
            test.context().id().expect("a context has a number")
        );
    });
}

#[test]
fn events_are_shared_by_a_green_context_and_its_primary_context() {
    on_driver(|test| {
        let (primary, context) = (test.context(), green(&test.device()));
        let (inside, outside) = (
            context.stream().expect("a stream"),
            primary.stream().expect("a stream"),
        );
        let event =
            Event::new(&primary, EventFlags::DISABLE_TIMING).expect("an event can be created");
        event
            .record(&inside)
            .expect("the event belongs to the same primary context");
        outside.wait_event(&event).expect("a stream can wait");
        let event =
            Event::new(&context, EventFlags::DISABLE_TIMING).expect("an event can be created");
        event
            .record(&outside)
            .expect("the event belongs to the same primary context");
        event.synchronize().expect("an event can be synchronized");
    });
}

#[test]
fn stream_returns_its_green_and_its_primary_context() {
    on_driver(|test| {
        let (primary, context) = (test.context(), green(&test.device()));
        let inside = test
            .assert_calls(Function::cuGreenCtxStreamCreate, 1, || context.stream())
            .expect("a stream can be created");
        let outside = primary.stream().expect("a stream can be created");
        assert_eq!(
            inside.context_raw().expect("it can be queried"),
            context.as_raw()
        );
        assert_eq!(
            outside.context_raw().expect("it can be queried"),
            primary.as_raw()
        );
        if test.driver().has(Function::cuStreamGetCtx_v2) {
            let green = context.green_raw().expect("the context is green");
            assert_eq!(
                inside.contexts_raw().expect("it can be queried"),
                (primary.as_raw(), green)
            );
            assert_eq!(
                outside.contexts_raw().expect("it can be queried"),
                (primary.as_raw(), std::ptr::null_mut())
            );
        }
        if test.driver().has(Function::cuStreamGetDevice) {
            assert_eq!(
                inside.device_raw().expect("it can be queried"),
                test.device().as_raw()
            );
        }
    });
}

#[test]
fn blocking_stream_of_a_green_context_is_refused() {
    on_driver(|test| {
        let options = StreamOptions::new().with_flags(StreamFlags::empty());
        let error =
            Stream::new(&green(&test.device()), options).expect_err("the streams are non-blocking");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    });
}

#[test]
fn event_of_a_green_context_waits_for_its_streams_only() {
    on_driver(|test| {
        let (primary, context) = (test.context(), green(&test.device()));
        let (inside, outside) = (
            context.stream().expect("a stream"),
            primary.stream().expect("a stream"),
        );
        let [own, whole] = [&context, &primary].map(|context| {
            Event::new(context, EventFlags::DISABLE_TIMING).expect("an event can be created")
        });
        let gate = Gate::on(&outside);
        context
            .record_event(&own)
            .expect("an event can be recorded");
        own.synchronize()
            .expect("nothing in the green context is pending");
        gate.open();
        outside.synchronize().expect("the stream works");
        let gate = Gate::on(&inside);
        primary
            .record_event(&whole)
            .expect("an event can be recorded");
        assert!(
            !whole.is_finished().expect("an event can be queried"),
            "the primary context includes the green one"
        );
        context.wait_event(&whole).expect("a context can wait");
        gate.open();
        context.synchronize().expect("the context works");
        assert!(whole.is_finished().expect("an event can be queried"));
    });
}

#[test]
fn green_context_without_a_default_stream_needs_a_newer_driver() {
    let make = |test: &TestDriver| {
        let split = all(test)
            .split(1, 16, SplitFlags::empty())
            .expect("there is room");
        let part = split.parts.into_iter().next().expect("there is a part");
        let options = GreenContextOptions::new(part).with_flags(GreenContextFlags::empty());
        test.device().green_context(options)
    };
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 0)),
        |test, _| {
            let error = make(test).expect_err("CUDA 13.0 requires it");
            assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        },
    );
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 1)),
        |test, _| {
            make(test).expect("CUDA 13.1 does not");
        },
    );
}

#[test]
fn green_context_needs_multiprocessors_of_its_device() {
    on_simulator(Config::new().with_devices(2), |test, simulator| {
        let other = test.driver().device(1).expect("there are two devices");
        let options = GreenContextOptions::new(
            other
                .multiprocessors()
                .expect("a device has multiprocessors"),
        );
        let error = test
            .device()
            .green_context(options)
            .expect_err("they belong to another device");
        assert!(
            error.to_string().contains("of device 1, expected device 0"),
            "{error}"
        );
        assert_eq!(simulator.calls(Function::cuGreenCtxCreate), 0);
    });
}

#[test]
fn green_context_runs_on_several_parts_together() {
    on_driver(|test| {
        let split = all(test)
            .split(2, 16, SplitFlags::empty())
            .expect("there is room for two parts");
        let mut parts = split.parts.into_iter();
        let options = GreenContextOptions::new(parts.next().expect("there are two parts"));
        let options = options.with_multiprocessors(parts.next().expect("there are two parts"));
        let context = test
            .device()
            .green_context(options)
            .expect("partitions of one split can be combined");
        assert_eq!(
            context
                .multiprocessors()
                .expect("a context has multiprocessors")
                .count(),
            32
        );
    });
}

#[test]
fn green_context_is_passed_to_other_code_and_back() {
    on_driver(|test| {
        let raw = green(&test.device())
            .into_raw()
            .expect("nothing keeps the context");
        assert!(matches!(raw, RawContext::Green(_)), "{raw:?}");
        // SAFETY: the handle was returned by `into_raw`, and has no other owner.
        let context =
            unsafe { Context::from_raw(test.driver(), raw) }.expect("the context is live");
        assert_eq!(context.kind(), ContextKind::Green);
        context.close().expect("nothing keeps the context");
    });
}

#[test]
fn green_context_whose_creation_cannot_be_finished_is_destroyed() {
    on_simulator(Config::new(), |test, simulator| {
        let split = all(test)
            .split(1, 16, SplitFlags::empty())
            .expect("there is room");
        let part = split.parts.into_iter().next().expect("there is a part");
        simulator.inject(
            Fault::on(Function::cuCtxFromGreenCtx).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let error = test
            .device()
            .green_context(GreenContextOptions::new(part))
            .expect_err("the injected fault occurs");
        assert_eq!(error.function(), Some(Function::cuCtxFromGreenCtx));
        assert_eq!(simulator.live_handles().contexts, 0);
    });
}

#[test]
fn green_contexts_are_missing_on_an_older_driver() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(12, 3)),
        |test, _| {
            let error = test
                .device()
                .multiprocessors()
                .expect_err("CUDA 12.3 has none");
            assert!(matches!(error, Error::Missing(_)), "{error}");
            assert!(error.to_string().contains("12.4"), "{error}");
        },
    );
}

#[test]
fn parts_of_different_wishes_are_served_in_order() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 1)),
        |test, _| {
            let wishes = [
                Partition::new(8).with_coscheduled(4),
                Partition::new(0).with_coscheduled(2).with_backfill(),
            ];
            let split = all(test).split_into(&wishes).expect("there is room");
            let counts: Vec<u32> = split.parts.iter().map(Multiprocessors::count).collect();
            assert_eq!((counts, split.remainder.is_none()), (vec![8, 124], true));
            let error = all(test)
                .split_into(&[Partition::new(200)])
                .expect_err("the number is too large");
            assert_eq!(
                error.code(),
                Some(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
            );
            assert!(matches!(
                all(test).split_into(&[]).expect_err("no parts"),
                Error::Argument(_)
            ));
            let stream = green(&test.device())
                .stream()
                .expect("a stream can be created");
            assert_eq!(
                stream
                    .multiprocessors()
                    .expect("a stream has multiprocessors")
                    .count(),
                16
            );
        },
    );
}

#[test]
fn resources_of_another_device_or_driver_are_an_error() {
    on_simulator(
        Config::new()
            .with_devices(2)
            .with_driver_version(CudaVersion::new(13, 1)),
        |test, _| {
            let other = test.driver().device(1).expect("there are two devices");
            let theirs = || {
                other
                    .multiprocessors()
                    .expect("a device has multiprocessors")
            };
            let config = other.work_queue_config().expect("a device has work queues");
            let queue = green(&other).work_queue().expect("a context has a queue");
            on_simulator(
                Config::new().with_driver_version(CudaVersion::new(13, 1)),
                |elsewhere, _| {
                    for options in [
                        GreenContextOptions::new(theirs()),
                        GreenContextOptions::new(all(test)).with_multiprocessors(theirs()),
                        GreenContextOptions::new(all(test)).with_multiprocessors(all(elsewhere)),
                        GreenContextOptions::new(all(test)).with_work_queue_config(&config),
                        GreenContextOptions::new(all(test)).with_work_queue(&queue),
                    ] {
                        let error = test
                            .device()
                            .green_context(options)
                            .expect_err("the resources belong to other contexts");
                        assert!(matches!(error, Error::Argument(_)), "{error}");
                    }
                },
            );
        },
    );
}

#[test]
fn work_queue_keeps_the_context_that_it_is_of() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 1)),
        |test, _| {
            let is_active = || {
                test.device()
                    .primary_state()
                    .expect("it can be read")
                    .is_active
            };
            let queue = green(&test.device())
                .work_queue()
                .expect("a context has a queue");
            assert!(is_active(), "the context lives as long as its queue");
            let options = GreenContextOptions::new(all(test)).with_work_queue(&queue);
            drop(queue);
            let context = test
                .device()
                .green_context(options)
                .expect("the queue is there");
            drop(context);
            assert!(!is_active());
        },
    );
}

#[test]
fn work_queues_of_a_context_are_configured() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 1)),
        |test, _| {
            let config = test
                .device()
                .work_queue_config()
                .expect("a device has work queues");
            assert_eq!(config.scope(), WorkQueueScope::Device);
            let config = config
                .with_concurrency(3)
                .with_scope(WorkQueueScope::Balanced);
            let options = GreenContextOptions::new(all(test)).with_work_queue_config(&config);
            let context = test
                .device()
                .green_context(options)
                .expect("the resources can be combined");
            let config = context
                .work_queue_config()
                .expect("a context has work queues");
            assert_eq!(
                (config.concurrency(), config.scope()),
                (3, WorkQueueScope::Balanced)
            );
            let queue = context.work_queue().expect("a context has a queue");
            let options = GreenContextOptions::new(all(test)).with_work_queue(&queue);
            test.device()
                .green_context(options)
                .expect("a queue can be shared");
        },
    );
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 0)),
        |test, _| {
            let error = test
                .device()
                .work_queue_config()
                .expect_err("CUDA 13.0 has none");
            assert_eq!(
                error.code(),
                Some(CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE)
            );
        },
    );
}

#[test]
fn objects_are_shared_by_the_primary_context_and_its_green_contexts() {
    on_driver(|test| {
        let (device, primary) = (test.device(), test.context());
        let greens = [green(&device), green(&device)];
        let created = device
            .create_context(curium_driver::ContextOptions::new())
            .expect("a context can be created");
        let shares = |one: &Context, other: &Context| {
            assert_eq!(
                one.shares_objects_with(other),
                other.shares_objects_with(one),
                "{one:?} {other:?}"
            );
            one.shares_objects_with(other)
        };
        assert!(shares(&primary, &primary) && shares(&created, &created));
        assert!(shares(&primary, &greens[0]) && shares(&greens[0], &greens[1]));
        assert!(!shares(&primary, &created) && !shares(&created, &greens[0]));
    });
}

#[test]
fn synchronizing_the_primary_context_waits_for_its_green_ones() {
    on_driver(|test| {
        let (primary, context) = (test.context(), green(&test.device()));
        let inside = context.stream().expect("a stream can be created");
        let (gate, is_open) = (Gate::on(&inside), AtomicBool::new(false));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                is_open.store(true, Ordering::SeqCst);
                gate.open();
            });
            primary.synchronize().expect("the contexts work");
            assert!(
                is_open.load(Ordering::SeqCst),
                "the primary context did not wait"
            );
        });
        assert!(inside.is_finished().expect("the stream works"));
    });
}

pub(crate) mod operations {
    use curium_driver::{
        Context, Event, EventFlags, GreenContextOptions, Multiprocessors, Partition, Result,
        SplitFlags,
    };

    use crate::operations::{Fixture, Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
        ("Device::multiprocessors", |fixture| {
            made(fixture.device.multiprocessors()?)
        }),
        ("Multiprocessors::max_parts", |fixture| {
            made(
                fixture
                    .device
                    .multiprocessors()?
                    .max_parts(16, SplitFlags::empty())?,
            )
        }),
        ("Multiprocessors::split", |fixture| made(part(fixture)?)),
        ("Device::green_context", |fixture| made(green(fixture)?)),
        ("Context::multiprocessors", |fixture| {
            made(fixture.context.multiprocessors()?)
        }),
        ("Context::multiprocessors, green", |fixture| {
            made(green(fixture)?.multiprocessors()?)
        }),
        ("Context::stream, green", |fixture| {
            made(green(fixture)?.stream()?)
        }),
        ("Stream::green_context_raw", |fixture| {
            made(fixture.context.stream()?.green_context_raw()?)
        }),
        ("Context::green_id", |fixture| {
            made(green(fixture)?.green_id()?)
        }),
        ("Context::record_event", |fixture| {
            let event = Event::new(&fixture.context, EventFlags::empty())?;
            made(fixture.context.record_event(&event)?)
        }),
        ("Context::wait_event", |fixture| {
            let event = Event::new(&fixture.context, EventFlags::empty())?;
            made(fixture.context.wait_event(&event)?)
        }),
        ("Context::record_event, green", |fixture| {
            let context = green(fixture)?;
            let event = Event::new(&context, EventFlags::empty())?;
            context.record_event(&event)?;
            made(context.wait_event(&event)?)
        }),
        ("Stream::context_raw", |fixture| {
            made(fixture.stream.context_raw()?)
        }),
        ("Stream::contexts_raw", |fixture| {
            made(fixture.stream.contexts_raw()?)
        }),
        ("Stream::device_raw", |fixture| {
            made(fixture.stream.device_raw()?)
        }),
    ];

    pub(crate) const SOLITARY: &[Operation] = &[
        ("Device::work_queue_config", |fixture| {
            made(fixture.device.work_queue_config()?)
        }),
        ("Context::work_queue_config", |fixture| {
            made(fixture.context.work_queue_config()?)
        }),
        ("Context::work_queue", |fixture| {
            made(fixture.context.work_queue()?)
        }),
        ("Stream::multiprocessors", |fixture| {
            made(fixture.stream.multiprocessors()?)
        }),
        ("Multiprocessors::split_into", |fixture| {
            made(
                fixture
                    .device
                    .multiprocessors()?
                    .split_into(&[Partition::default()])?,
            )
        }),
    ];

    pub(crate) fn part(fixture: &Fixture) -> Result<Multiprocessors> {
        let split = fixture
            .device
            .multiprocessors()?
            .split(1, 16, SplitFlags::empty())?;
        Ok(split
            .parts
            .into_iter()
            .next()
            .expect("a split returns a partition"))
    }

    pub(crate) fn green(fixture: &Fixture) -> Result<Context> {
        fixture
            .device
            .green_context(GreenContextOptions::new(part(fixture)?))
    }
}
