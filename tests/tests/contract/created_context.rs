//! Created contexts: creation, transfer of ownership, borrowing, and settings.

use std::sync::Arc;

use curium_driver::{
    CacheConfig, Context, ContextFlags, ContextKind, ContextOptions, Error, Event, EventFlags,
    Function, LaunchConfig, Library, RawContext, RdmaScope, SharedMemoryConfig,
};
use curium_memory::{DeviceBuffer, SyncAlloc};
use curium_sim::{Config, Fault};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{
    CreatedContext, Gate, TestDriver, in_own_process, kernels, on_driver, on_simulator,
};

fn created(test: &TestDriver) -> Context {
    test.device()
        .create_context(ContextOptions::new())
        .expect("a context can be created")
}

/// Uses an object of every kind that a context can create.
fn use_all_of(context: &Context) {
    let stream = context.stream().expect("a stream can be created");
    let event = Event::new(context, EventFlags::empty()).expect("an event can be created");
    let mut buffer = DeviceBuffer::from_slice(&stream, &[1_u32, 2, 3]).expect("memory suffices");
    buffer
        .copy_from_slice(&[4, 5, 6])
        .expect("the buffer is as long");
    event.record(&stream).expect("an event can be recorded");
    event.synchronize().expect("an event can be synchronized");
    assert_eq!(buffer.to_vec().expect("the buffer can be read"), [4, 5, 6]);
    context.synchronize().expect("the context works");
}

#[test]
fn kernel_in_one_context_uses_memory_of_another_of_the_device() {
    // Without peer access the launch would corrupt the context.
    in_own_process(
        "created_context::kernel_in_one_context_uses_memory_of_another_of_the_device",
        || {
            on_driver(|test| {
                let (stream, context) = (test.stream(), created(test));
                let other = context.stream().expect("a stream can be created");
                let library =
                    Library::from_ptx(test.driver(), kernels::FILL).expect("the kernels load");
                let fill = library
                    .kernel::<(&mut [u32], u32, u32)>("fill")
                    .expect("there is such a kernel");
                let mut pooled = DeviceBuffer::<u32>::zeroed(&stream, 64).expect("memory suffices");
                let mut plain = DeviceBuffer::<u32, _>::zeroed_in(&stream, 64, SyncAlloc)
                    .expect("memory suffices");
                let config = LaunchConfig::for_elements(64);
                // SAFETY: `fill` writes exactly the words of the buffer.
                unsafe { fill.launch(&other, config, (&mut pooled, 5, 64)) }
                    .expect("it can be launched");
                // SAFETY: as above.
                unsafe { fill.launch(&other, config, (&mut plain, 6, 64)) }
                    .expect("it can be launched");
                assert_eq!(pooled.to_vec().expect("the buffer can be read"), [5; 64]);
                assert_eq!(plain.to_vec().expect("the buffer can be read"), [6; 64]);
            });
        },
    );
}

#[test]
fn created_context_is_not_current_on_any_thread_and_supports_every_operation() {
    on_driver(|test| {
        let context = created(test);
        assert!(
            Context::current_raw(test.driver())
                .expect("the thread has a stack")
                .is_null()
        );
        assert_eq!(context.kind(), ContextKind::Created);
        assert_eq!(context.device().as_raw(), test.device().as_raw());
        assert_ne!(context.as_raw(), test.context().as_raw());
        use_all_of(&context);
        context.close().expect("nothing keeps the context");
    });
}

#[test]
fn context_is_created_by_the_best_function_of_the_driver() {
    for (version, function) in [
        (CudaVersion::new(13, 0), Function::cuCtxCreate_v4),
        (CudaVersion::new(12, 5), Function::cuCtxCreate_v4),
        (CudaVersion::new(12, 4), Function::cuCtxCreate_v2),
        (CudaVersion::new(11, 8), Function::cuCtxCreate_v2),
    ] {
        on_simulator(
            Config::new().with_driver_version(version),
            |test, simulator| {
                drop(created(test));
                assert_eq!(simulator.calls(function), 1, "{version}");
            },
        );
    }
}

#[test]
fn context_that_cannot_be_limited_is_refused() {
    for version in [CudaVersion::new(13, 0), CudaVersion::new(11, 8)] {
        on_simulator(
            Config::new().with_driver_version(version),
            |test, simulator| {
                let options = ContextOptions::new().with_multiprocessors(16);
                let error = test
                    .device()
                    .create_context(options)
                    .expect_err("there is no multi-process service");
                assert_eq!(
                    error.code(),
                    Some(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY)
                );
                assert_eq!(
                    simulator.calls(Function::cuCtxCreate_v2),
                    0,
                    "the requested limit is not ignored"
                );
            },
        );
    }
}

#[test]
fn flags_that_exclude_each_other_are_an_error_that_names_them() {
    on_driver(|test| {
        let flags = ContextFlags::SPIN | ContextFlags::YIELD;
        let error = test
            .device()
            .create_context(ContextOptions::new().with_flags(flags))
            .expect_err("they are mutually exclusive");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert!(error.to_string().contains("SPIN | YIELD"), "{error}");
    });
}

#[test]
fn flags_of_a_context_are_read_and_replaced() {
    on_driver(|test| {
        let options = ContextOptions::new().with_flags(ContextFlags::BLOCKING_SYNC);
        let context = test
            .device()
            .create_context(options)
            .expect("a context can be created");
        assert!(
            context
                .flags()
                .expect("flags can be read")
                .contains(ContextFlags::BLOCKING_SYNC)
        );
        context
            .set_flags(ContextFlags::SPIN)
            .expect("flags can be set");
        let flags = context.flags().expect("flags can be read");
        assert!(
            flags.contains(ContextFlags::SPIN) && !flags.contains(ContextFlags::BLOCKING_SYNC),
            "{flags:?}"
        );
    });
}

#[test]
fn context_whose_creation_cannot_be_finished_is_destroyed() {
    on_simulator(Config::new(), |test, simulator| {
        simulator.inject(
            Fault::on(Function::cuCtxPopCurrent_v2).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let error = test
            .device()
            .create_context(ContextOptions::new())
            .expect_err("it could not be popped");
        assert_eq!(error.function(), Some(Function::cuCtxPopCurrent_v2));
        assert_eq!(simulator.live_handles().contexts, 0);
        assert!(
            Context::current_raw(test.driver())
                .expect("the thread has a stack")
                .is_null()
        );
    });
}

#[test]
fn context_that_the_driver_does_not_destroy_is_given_back_by_close() {
    on_simulator(Config::new(), |test, simulator| {
        simulator.inject(
            Fault::on(Function::cuCtxDestroy_v2).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let (context, error) = created(test)
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(Function::cuCtxDestroy_v2));
        context.synchronize().expect("the context is still there");
    });
}

#[test]
fn created_context_lives_as_long_as_the_objects_created_from_it() {
    on_driver(|test| {
        let stream = created(test).stream().expect("a stream can be created");
        let buffer = DeviceBuffer::from_slice(&stream, &[7_u8; 100]).expect("memory suffices");
        drop(stream);
        assert_eq!(buffer.to_vec().expect("the buffer can be read"), [7; 100]);
    });
}

#[test]
fn contexts_have_numbers_of_their_own() {
    on_driver(|test| {
        let (first, second) = (created(test), created(test));
        let number = |context: &Context| context.id().expect("a context has a number");
        assert_ne!(number(&first), number(&second));
        assert_ne!(number(&first), number(&test.context()));
        assert_eq!(first.api_version().expect("a context has a version"), 3020);
        assert_eq!(first.green_id().expect("it can be queried"), None);
    });
}

#[test]
fn settings_of_a_context_are_read_and_set() {
    on_driver(|test| {
        let context = created(test);
        assert_eq!(
            context.cache_config().expect("it can be read"),
            CacheConfig::NoPreference
        );
        context
            .set_cache_config(CacheConfig::PreferL1)
            .expect("it can be set");
        assert_eq!(
            context.cache_config().expect("it can be read"),
            CacheConfig::PreferL1
        );
        let error = context
            .set_cache_config(CacheConfig::Unknown(99))
            .expect_err("there is no such preference");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert_eq!(
            context.cache_config().expect("it can be read"),
            CacheConfig::PreferL1
        );

        context
            .set_shared_memory_config(SharedMemoryConfig::EightByteBanks)
            .expect("it can be set");
        let banks = context.shared_memory_config().expect("it can be read");
        assert_eq!(
            banks,
            SharedMemoryConfig::FourByteBanks,
            "current devices have a fixed width"
        );
        context
            .set_shared_memory_config(SharedMemoryConfig::Unknown(99))
            .expect_err("there is no such width");

        context
            .reset_persisting_l2()
            .expect("the cache can be reset");
        context
            .flush_rdma_writes(RdmaScope::Owner)
            .expect("the host can flush");
        let all = test
            .device()
            .attribute(curium_driver::DeviceAttribute::MULTIPROCESSOR_COUNT)
            .expect("it is known");
        assert_eq!(
            context.affinity().expect("it can be read"),
            all,
            "the context is not limited"
        );
    });
}

#[test]
fn priorities_of_streams_are_a_range_around_the_default() {
    on_driver(|test| {
        let range = test.context().stream_priorities().expect("it can be read");
        assert!(range.greatest <= 0 && range.least >= 0, "{range:?}");
        assert!(range.numbers().contains(&0));
        assert_eq!(range.clamp(i32::MIN), range.greatest);
        assert_eq!(range.clamp(i32::MAX), range.least);
        assert_eq!(range.clamp(0), 0);
    });
}

#[test]
fn event_of_a_context_waits_for_every_stream() {
    on_driver(|test| {
        let context = created(test);
        let (stream, other) = (
            context.stream().expect("a stream"),
            context.stream().expect("a stream"),
        );
        let event =
            Event::new(&context, EventFlags::DISABLE_TIMING).expect("an event can be created");
        let gate = Gate::on(&stream);
        context
            .record_event(&event)
            .expect("an event can be recorded");
        assert!(
            !event.is_finished().expect("an event can be queried"),
            "the work of one stream has not completed"
        );
        context.wait_event(&event).expect("a context can wait");
        let behind =
            Event::new(&context, EventFlags::DISABLE_TIMING).expect("an event can be created");
        behind.record(&other).expect("an event can be recorded");
        assert!(
            !behind.is_finished().expect("an event can be queried"),
            "the other stream waits for the event"
        );
        gate.open();
        behind.synchronize().expect("an event can be synchronized");
        assert!(event.is_finished().expect("an event can be queried"));
    });
}

#[test]
fn event_of_another_context_is_not_recorded_but_waited_for() {
    on_driver(|test| {
        let (context, other) = (created(test), test.context());
        let event =
            Event::new(&other, EventFlags::DISABLE_TIMING).expect("an event can be created");
        let error = context
            .record_event(&event)
            .expect_err("the event belongs to another context");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_HANDLE));
        context
            .wait_event(&event)
            .expect("any event can be synchronized");
    });
}

#[test]
fn context_is_passed_to_other_code_and_back() {
    on_driver(|test| {
        let context = created(test);
        let stream = context.stream().expect("a stream can be created");
        let context = context
            .into_raw()
            .expect_err("the stream keeps the context");
        drop(stream);
        let raw = context.into_raw().expect("nothing keeps the context");
        assert!(matches!(raw, RawContext::Created(_)), "{raw:?}");
        // SAFETY: the handle was returned by `into_raw`, and has no other owner.
        let context =
            unsafe { Context::from_raw(test.driver(), raw) }.expect("the context is live");
        assert_eq!(context.kind(), ContextKind::Created);
        use_all_of(&context);

        let raw = test
            .context()
            .into_raw()
            .expect("nothing keeps the context");
        // SAFETY: the handle was returned by `into_raw`, and this retention has no other owner.
        let primary =
            unsafe { Context::from_raw(test.driver(), raw) }.expect("the context is live");
        assert_eq!(primary.kind(), ContextKind::Primary);
        use_all_of(&primary);
    });
}

#[test]
fn borrowed_context_is_not_destroyed() {
    on_driver(|test| {
        let owner = CreatedContext::new(&test.device());
        let borrow = || {
            // SAFETY: `owner` is dropped last.
            unsafe { Context::from_raw(test.driver(), RawContext::Borrowed(owner.as_raw())) }
                .expect("it is live")
        };
        let first = borrow();
        assert_eq!(first.kind(), ContextKind::Borrowed);
        assert_eq!(first.device().as_raw(), test.device().as_raw());
        use_all_of(&first);
        first.close().expect("nothing can be ended");
        use_all_of(&borrow());
        assert_eq!(
            borrow().into_raw().expect("nothing keeps it"),
            RawContext::Borrowed(owner.as_raw())
        );
    });
}

#[test]
fn borrowed_context_keeps_its_owner_for_as_long_as_anything_is_left() {
    on_driver(|test| {
        let owner = Arc::new(());
        let foreign = CreatedContext::new(&test.device());
        let held = Arc::clone(&owner);
        // SAFETY: `foreign` is dropped last.
        let context = unsafe { Context::borrow_raw(test.driver(), foreign.as_raw(), held) };
        let stream = context
            .expect("the context is live")
            .stream()
            .expect("a stream can be created");
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(stream);
        assert_eq!(Arc::strong_count(&owner), 1);
    });
}

#[test]
fn handle_that_is_no_context_is_refused() {
    on_simulator(Config::new(), |test, _| {
        let nothing = std::ptr::without_provenance_mut(0x1000);
        // SAFETY: the simulator validates handles.
        let result = unsafe { Context::from_raw(test.driver(), RawContext::Borrowed(nothing)) };
        let error = result.expect_err("there is no such context");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    });
}

#[test]
fn options_that_exclude_each_other_are_refused_before_the_driver_is_called() {
    on_simulator(Config::new(), |test, simulator| {
        let queue = curium_driver::GraphicsQueue::Vulkan(std::ptr::without_provenance_mut(8));
        // SAFETY: the driver rejects the options before it dereferences the pointer.
        let options = unsafe {
            ContextOptions::new()
                .with_multiprocessors(8)
                .with_graphics(queue)
        };
        let error = test
            .device()
            .create_context(options)
            .expect_err("they are mutually exclusive");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert_eq!(simulator.calls(Function::cuCtxCreate_v4), 0);
    });
}

#[test]
fn auto_scheduling_is_no_scheduling_flag() {
    on_driver(|test| {
        let options = ContextOptions::new().with_flags(ContextFlags::BLOCKING_SYNC);
        let context = test
            .device()
            .create_context(options)
            .expect("a context can be created");
        context
            .set_flags(ContextFlags::AUTO)
            .expect("flags can be set");
        let flags = context.flags().expect("flags can be read");
        let scheduling = ContextFlags::SPIN | ContextFlags::YIELD | ContextFlags::BLOCKING_SYNC;
        assert!(
            (flags & scheduling).is_empty() && ContextFlags::AUTO.is_empty(),
            "{flags:?}"
        );
    });
}

pub(crate) mod operations {
    use curium_driver::{
        CacheConfig, Context, ContextFlags, ContextOptions, RawContext, RdmaScope,
        SharedMemoryConfig,
    };

    use crate::operations::{Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
        ("Device::create_context", |fixture| {
            made(fixture.device.create_context(ContextOptions::new())?)
        }),
        ("Context::id", |fixture| made(fixture.context.id()?)),
        ("Context::api_version", |fixture| {
            made(fixture.context.api_version()?)
        }),
        ("Context::flags", |fixture| made(fixture.context.flags()?)),
        ("Context::set_flags", |fixture| {
            made(fixture.context.set_flags(ContextFlags::empty())?)
        }),
        ("Context::cache_config", |fixture| {
            made(fixture.context.cache_config()?)
        }),
        ("Context::set_cache_config", |fixture| {
            made(
                fixture
                    .context
                    .set_cache_config(CacheConfig::NoPreference)?,
            )
        }),
        ("Context::shared_memory_config", |fixture| {
            made(fixture.context.shared_memory_config()?)
        }),
        ("Context::set_shared_memory_config", |fixture| {
            made(
                fixture
                    .context
                    .set_shared_memory_config(SharedMemoryConfig::Default)?,
            )
        }),
        ("Context::stream_priorities", |fixture| {
            made(fixture.context.stream_priorities()?)
        }),
        ("Context::affinity", |fixture| {
            made(fixture.context.affinity()?)
        }),
        ("Context::reset_persisting_l2", |fixture| {
            made(fixture.context.reset_persisting_l2()?)
        }),
        ("Context::flush_rdma_writes", |fixture| {
            made(fixture.context.flush_rdma_writes(RdmaScope::Owner)?)
        }),
        ("Context::from_raw", |fixture| {
            let raw = RawContext::Borrowed(fixture.context.as_raw());
            // SAFETY: the fixture keeps the context.
            made(unsafe { Context::from_raw(&fixture.driver, raw) }?)
        }),
        ("Context::into_raw", |fixture| {
            let raw = fixture
                .device
                .create_context(ContextOptions::new())?
                .into_raw()
                .expect("nothing else owns it");
            // SAFETY: `into_raw` released ownership of the context, and it has no other owner.
            let taken = unsafe { Context::from_raw(&fixture.driver, raw) };
            if taken.is_err() {
                // SAFETY: the failed attempt did not change the context.
                drop(unsafe { Context::from_raw(&fixture.driver, raw) });
            }
            made(taken?)
        }),
        ("Context::borrow_raw", |fixture| {
            let owner = fixture.context.clone();
            // SAFETY: `owner` is the context.
            made(unsafe { Context::borrow_raw(&fixture.driver, owner.as_raw(), owner) }?)
        }),
    ];
}
