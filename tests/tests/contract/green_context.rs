//! Green contexts: disjoint parts of a device's multiprocessors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use curium_driver::{
    Context, ContextKind, Device, Error, Event, EventFlags, Function, GreenContextFlags,
    GreenContextOptions, Multiprocessors, Partition, RawContext, SplitFlags, Stream, StreamFlags,
    StreamOptions, WorkQueueScope,
};
use curium_memory::DeviceBuffer;
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{Gate, TestDriver, TestResult, driver_test, on_simulator, simulator_test};

fn all(test: &TestDriver) -> TestResult<Multiprocessors> {
    Ok(test.device().multiprocessors()?)
}

/// Returns a green context on the first of two parts.
fn green(device: &Device) -> TestResult<Context> {
    let all = device.multiprocessors()?;
    let split = all.split(2, 16, SplitFlags::empty())?;
    let part = split.parts.into_iter().next().ok_or("no part")?;
    Ok(device.green_context(GreenContextOptions::new(part))?)
}

#[driver_test]
fn split_returns_equal_parts_and_a_remainder(test: &TestDriver) -> TestResult {
    let total = all(test)?.count();
    let split = all(test)?.split(3, 10, SplitFlags::empty())?;
    assert_eq!(split.parts.len(), 3);
    let size = split.parts[0].count();
    assert!(
        size >= 10 && split.parts.iter().all(|part| part.count() == size),
        "{split:?}"
    );
    let remaining = split.remainder.as_ref().map_or(0, Multiprocessors::count);
    assert_eq!(3 * size + remaining, total, "{split:?}");
    Ok(())
}

#[driver_test]
fn split_gives_fewer_parts_where_there_is_no_room(test: &TestDriver) -> TestResult {
    let possible = all(test)?.max_parts(32, SplitFlags::empty())?;
    let split = all(test)?.split(1000, 32, SplitFlags::empty())?;
    assert_eq!(split.parts.len(), possible as usize);
    let whole = all(test)?.split(1, all(test)?.count(), SplitFlags::empty())?;
    assert!(whole.remainder.is_none(), "{whole:?}");
    Ok(())
}

#[driver_test]
fn smaller_parts_are_had_by_giving_up_clusters(test: &TestDriver) -> TestResult {
    let apart = all(test)?.split(4, 1, SplitFlags::IGNORE_COSCHEDULING)?;
    let together = all(test)?.split(4, 1, SplitFlags::empty())?;
    assert!(
        apart.parts[0].count() <= together.parts[0].count(),
        "{apart:?} {together:?}"
    );
    Ok(())
}

#[driver_test]
fn impossible_split_is_an_error_with_the_counts(test: &TestDriver) -> TestResult {
    let total = all(test)?.count();
    let error = all(test)?
        .split(1, total + 1, SplitFlags::empty())
        .expect_err("the number is too large");
    assert_eq!(
        error.code(),
        Some(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
    );
    let text = format!("1 parts of {} of {total} multiprocessors", total + 1);
    assert!(error.to_string().contains(&text), "{error}");
    let both = SplitFlags::IGNORE_COSCHEDULING | SplitFlags::MAX_CLUSTER_SIZE;
    let error = all(test)?
        .split(2, 16, both)
        .expect_err("the flags are mutually exclusive");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    let error = all(test)?
        .split(0, 16, SplitFlags::empty())
        .expect_err("no parts");
    assert!(matches!(error, Error::Argument(_)), "{error}");
    Ok(())
}

#[driver_test]
fn part_is_split_again_only_once_it_is_in_a_context(test: &TestDriver) -> TestResult {
    let split = all(test)?.split(1, 16, SplitFlags::empty())?;
    let part = split.parts.into_iter().next().ok_or("no part")?;
    let error = part
        .split(2, 8, SplitFlags::empty())
        .expect_err("it is in no context");
    assert_eq!(
        error.code(),
        Some(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
    );
    let context = green(&test.device())?;
    let inner = context.multiprocessors()?;
    assert_eq!(inner.count(), 16);
    let split = inner.split(1, 8, SplitFlags::empty())?;
    assert_eq!(
        split.parts[0].count() + split.remainder.ok_or("no remainder")?.count(),
        16
    );
    Ok(())
}

/// A green context is current on no thread and supports every operation.
#[driver_test]
fn green_context_supports_every_operation(test: &TestDriver) -> TestResult {
    let primary = test.context();
    let context = green(&test.device())?;
    assert!(Context::current_raw(test.driver())?.is_null());
    assert_eq!(context.kind(), ContextKind::Green);
    let stream = context.stream()?;
    assert_eq!(Some(stream.green_context_raw()?), context.green_raw());
    let buffer = DeviceBuffer::from_slice(&stream, &[1_u32, 2, 3])?;
    let outside = primary.stream()?;
    assert!(outside.green_context_raw()?.is_null());
    let mut copy = DeviceBuffer::<u32>::zeroed(&outside, 3)?;
    copy.copy_from_device(&buffer)?;
    assert_eq!(copy.to_vec()?, [1, 2, 3]);
    context.synchronize()?;
    Ok(())
}

#[simulator_test]
fn green_context_keeps_the_primary_one(test: &TestDriver, _: &Simulator) -> TestResult {
    let is_active = || -> TestResult<_> { Ok(test.device().primary_state()?.is_active) };
    let context = green(&test.device())?;
    assert!(is_active()?);
    let stream = context.stream()?;
    drop(context);
    stream.synchronize()?;
    drop(stream);
    assert!(!is_active()?);
    Ok(())
}

#[driver_test]
fn green_contexts_have_unique_ids(test: &TestDriver) -> TestResult {
    let first = green(&test.device())?;
    let second = green(&test.device())?;
    let number = |context: &Context| -> TestResult<_> {
        Ok(context.green_id()?.ok_or("not a green context")?)
    };
    assert_ne!(number(&first)?, number(&second)?);
    assert_ne!(first.id()?, test.context().id()?);
    Ok(())
}

/// Events are shared by a green context and its primary context.
#[driver_test]
fn green_and_primary_contexts_share_events(test: &TestDriver) -> TestResult {
    let primary = test.context();
    let context = green(&test.device())?;
    let inside = context.stream()?;
    let outside = primary.stream()?;
    let event = Event::new(&primary, EventFlags::DISABLE_TIMING)?;
    event.record(&inside)?;
    outside.wait_event(&event)?;
    let event = Event::new(&context, EventFlags::DISABLE_TIMING)?;
    event.record(&outside)?;
    event.synchronize()?;
    Ok(())
}

#[driver_test]
fn stream_returns_its_green_and_its_primary_context(test: &TestDriver) -> TestResult {
    let primary = test.context();
    let context = green(&test.device())?;
    let inside = test.assert_calls(Function::cuGreenCtxStreamCreate, 1, || context.stream())?;
    let outside = primary.stream()?;
    assert_eq!(inside.context_raw()?, context.as_raw());
    assert_eq!(outside.context_raw()?, primary.as_raw());
    if test.driver().has(Function::cuStreamGetCtx_v2) {
        let green = context.green_raw().ok_or("not a green context")?;
        assert_eq!(inside.contexts_raw()?, (primary.as_raw(), green));
        assert_eq!(
            outside.contexts_raw()?,
            (primary.as_raw(), std::ptr::null_mut())
        );
    }
    if test.driver().has(Function::cuStreamGetDevice) {
        assert_eq!(inside.device_raw()?, test.device().as_raw());
    }
    Ok(())
}

#[driver_test]
fn blocking_green_context_stream_is_refused(test: &TestDriver) -> TestResult {
    let options = StreamOptions::new().with_flags(StreamFlags::empty());
    let error =
        Stream::new(&green(&test.device())?, options).expect_err("the streams are non-blocking");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    Ok(())
}

/// An event of a green context waits for its streams only.
#[driver_test]
fn green_context_event_waits_for_its_streams(test: &TestDriver) -> TestResult {
    let primary = test.context();
    let context = green(&test.device())?;
    let inside = context.stream()?;
    let outside = primary.stream()?;
    let [own, whole] = [&context, &primary].map(|context| {
        Event::new(context, EventFlags::DISABLE_TIMING).expect("failed to create an event")
    });
    let gate = Gate::on(&outside);
    context.record_event(&own)?;
    own.synchronize()?;
    gate.open();
    outside.synchronize()?;
    let gate = Gate::on(&inside);
    primary.record_event(&whole)?;
    assert!(
        !whole.is_finished()?,
        "the primary context includes the green one"
    );
    context.wait_event(&whole)?;
    gate.open();
    context.synchronize()?;
    assert!(whole.is_finished()?);
    Ok(())
}

/// A green context without a default stream needs a newer driver.
#[test]
fn default_stream_is_optional() -> TestResult {
    let make = |test: &TestDriver| -> TestResult<_> {
        let split = all(test)?.split(1, 16, SplitFlags::empty())?;
        let part = split.parts.into_iter().next().ok_or("no part")?;
        let options = GreenContextOptions::new(part).with_flags(GreenContextFlags::empty());
        Ok(test.device().green_context(options))
    };
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 0)),
        |test, _| -> TestResult {
            let error = make(test)?.expect_err("CUDA 13.0 requires it");
            assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
            Ok(())
        },
    )?;
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 1)),
        |test, _| -> TestResult {
            make(test)??;
            Ok(())
        },
    )?;
    Ok(())
}

#[simulator_test(Config::new().with_devices(2))]
fn green_context_requires_its_own_device(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let other = test.driver().device(1)?;
    let options = GreenContextOptions::new(other.multiprocessors()?);
    let error = test
        .device()
        .green_context(options)
        .expect_err("they belong to another device");
    assert!(
        error.to_string().contains("of device 1, expected device 0"),
        "{error}"
    );
    assert_eq!(simulator.calls(Function::cuGreenCtxCreate), 0);
    Ok(())
}

#[driver_test]
fn green_context_runs_on_several_parts_together(test: &TestDriver) -> TestResult {
    let split = all(test)?.split(2, 16, SplitFlags::empty())?;
    let mut parts = split.parts.into_iter();
    let options = GreenContextOptions::new(parts.next().ok_or("fewer than two parts")?);
    let options = options.with_multiprocessors(parts.next().ok_or("fewer than two parts")?);
    let context = test.device().green_context(options)?;
    assert_eq!(context.multiprocessors()?.count(), 32);
    Ok(())
}

#[driver_test]
fn green_context_is_passed_to_other_code_and_back(test: &TestDriver) -> TestResult {
    let raw = green(&test.device())?
        .into_raw()
        .expect("nothing keeps the context");
    assert!(matches!(raw, RawContext::Green(_)), "{raw:?}");
    // SAFETY: the handle was returned by `into_raw`, and has no other owner.
    let context = unsafe { Context::from_raw(test.driver(), raw) }?;
    assert_eq!(context.kind(), ContextKind::Green);
    context.close()?;
    Ok(())
}

/// A green context whose creation cannot be finished is destroyed.
#[simulator_test]
fn partially_created_green_context_is_destroyed(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let split = all(test)?.split(1, 16, SplitFlags::empty())?;
    let part = split.parts.into_iter().next().ok_or("no part")?;
    simulator.inject(
        Fault::on(Function::cuCtxFromGreenCtx).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let error = test
        .device()
        .green_context(GreenContextOptions::new(part))
        .expect_err("the injected fault occurs");
    assert_eq!(error.function(), Some(Function::cuCtxFromGreenCtx));
    assert_eq!(simulator.live_handles().contexts, 0);
    Ok(())
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::new(12, 3)))]
fn green_contexts_are_missing_on_an_older_driver(test: &TestDriver, _: &Simulator) {
    let error = test
        .device()
        .multiprocessors()
        .expect_err("CUDA 12.3 has none");
    assert!(matches!(error, Error::Missing(_)), "{error}");
    assert!(error.to_string().contains("12.4"), "{error}");
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::new(13, 1)))]
fn different_partitions_are_returned_in_order(test: &TestDriver, _: &Simulator) -> TestResult {
    let wishes = [
        Partition::new(8).with_coscheduled(4),
        Partition::new(0).with_coscheduled(2).with_backfill(),
    ];
    let split = all(test)?.split_into(&wishes)?;
    let counts: Vec<u32> = split.parts.iter().map(Multiprocessors::count).collect();
    assert_eq!((counts, split.remainder.is_none()), (vec![8, 124], true));
    let error = all(test)?
        .split_into(&[Partition::new(200)])
        .expect_err("the number is too large");
    assert_eq!(
        error.code(),
        Some(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
    );
    assert!(matches!(
        all(test)?.split_into(&[]).expect_err("no parts"),
        Error::Argument(_)
    ));
    let stream = green(&test.device())?.stream()?;
    assert_eq!(stream.multiprocessors()?.count(), 16);
    Ok(())
}

#[simulator_test(Config::new()
            .with_devices(2)
            .with_driver_version(CudaVersion::new(13, 1)))]
fn foreign_resources_are_an_error(test: &TestDriver, _: &Simulator) -> TestResult {
    let other = test.driver().device(1)?;
    let theirs = || -> TestResult<_> { Ok(other.multiprocessors()?) };
    let config = other.work_queue_config()?;
    let queue = green(&other)?.work_queue()?;
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 1)),
        |elsewhere, _| -> TestResult {
            for options in [
                GreenContextOptions::new(theirs()?),
                GreenContextOptions::new(all(test)?).with_multiprocessors(theirs()?),
                GreenContextOptions::new(all(test)?).with_multiprocessors(all(elsewhere)?),
                GreenContextOptions::new(all(test)?).with_work_queue_config(&config),
                GreenContextOptions::new(all(test)?).with_work_queue(&queue),
            ] {
                let error = test
                    .device()
                    .green_context(options)
                    .expect_err("the resources belong to other contexts");
                assert!(matches!(error, Error::Argument(_)), "{error}");
            }
            Ok(())
        },
    )?;
    Ok(())
}

#[simulator_test(Config::new().with_driver_version(CudaVersion::new(13, 1)))]
fn work_queue_keeps_its_context(test: &TestDriver, _: &Simulator) -> TestResult {
    let is_active = || -> TestResult<_> { Ok(test.device().primary_state()?.is_active) };
    let queue = green(&test.device())?.work_queue()?;
    assert!(is_active()?, "the context lives as long as its queue");
    let options = GreenContextOptions::new(all(test)?).with_work_queue(&queue);
    drop(queue);
    let context = test.device().green_context(options)?;
    drop(context);
    assert!(!is_active()?);
    Ok(())
}

#[test]
fn work_queues_are_configured() -> TestResult {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 1)),
        |test, _| -> TestResult {
            let config = test.device().work_queue_config()?;
            assert_eq!(config.scope(), WorkQueueScope::Device);
            let config = config
                .with_concurrency(3)
                .with_scope(WorkQueueScope::Balanced);
            let options = GreenContextOptions::new(all(test)?).with_work_queue_config(&config);
            let context = test.device().green_context(options)?;
            let config = context.work_queue_config()?;
            assert_eq!(
                (config.concurrency(), config.scope()),
                (3, WorkQueueScope::Balanced)
            );
            let queue = context.work_queue()?;
            let options = GreenContextOptions::new(all(test)?).with_work_queue(&queue);
            test.device().green_context(options)?;
            Ok(())
        },
    )?;
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
    Ok(())
}

/// Objects are shared by the primary context and its green contexts.
#[driver_test]
fn primary_and_green_contexts_share_objects(test: &TestDriver) -> TestResult {
    let device = test.device();
    let primary = test.context();
    let greens = [green(&device)?, green(&device)?];
    let created = device.create_context(curium_driver::ContextOptions::new())?;
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
    Ok(())
}

/// Synchronizing the primary context waits for its green ones.
#[driver_test]
fn primary_synchronize_waits_for_green_contexts(test: &TestDriver) -> TestResult {
    let primary = test.context();
    let context = green(&test.device())?;
    let inside = context.stream()?;
    let gate = Gate::on(&inside);
    let is_open = AtomicBool::new(false);
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
    assert!(inside.is_finished()?);
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{
        Context, Event, EventFlags, GreenContextOptions, Multiprocessors, Partition, Result,
        SplitFlags,
    };

    use crate::operations::{Fixture, Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
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

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
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

    inventory::submit! { Operations::Solitary(SOLITARY) }

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
