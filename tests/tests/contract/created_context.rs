//! Created contexts: creation, transfer of ownership, borrowing, and settings.

use std::sync::Arc;

use curium_driver::{
    CacheConfig, Context, ContextFlags, ContextKind, ContextOptions, Error, Event, EventFlags,
    Function, LaunchConfig, Library, RawContext, RdmaScope, SharedMemoryConfig,
};
use curium_memory::{DeviceBuffer, SyncAlloc};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUresult, CudaVersion};
use curium_tests::{
    CreatedContext, Gate, TestDriver, TestResult, driver_test, in_own_process, kernels, on_driver,
    on_simulator, simulator_test,
};

fn created(test: &TestDriver) -> TestResult<Context> {
    Ok(test.device().create_context(ContextOptions::new())?)
}

/// Uses an object of every kind that a context can create.
fn use_every_kind(context: &Context) -> TestResult {
    let stream = context.stream()?;
    let event = Event::new(context, EventFlags::empty())?;
    let mut buffer = DeviceBuffer::from_slice(&stream, &[1_u32, 2, 3])?;
    buffer.copy_from_slice(&[4, 5, 6])?;
    event.record(&stream)?;
    event.synchronize()?;
    assert_eq!(buffer.to_vec()?, [4, 5, 6]);
    context.synchronize()?;
    Ok(())
}

/// A kernel in one context uses memory of another of the device.
#[test]
fn kernel_uses_foreign_memory() -> TestResult {
    // Without peer access the launch would corrupt the context.
    in_own_process(|| -> TestResult {
        on_driver(|test| -> TestResult {
            let stream = test.stream();
            let context = created(test)?;
            let other = context.stream()?;
            let library = Library::from_ptx(test.driver(), kernels::FILL)?;
            let fill = library.kernel::<(&mut [u32], u32, u32)>("fill")?;
            let mut pooled = DeviceBuffer::<u32>::zeroed(&stream, 64)?;
            let mut plain = DeviceBuffer::<u32, _>::zeroed_in(&stream, 64, SyncAlloc)?;
            let config = LaunchConfig::for_elements(64);
            // SAFETY: `fill` writes exactly the words of the buffer.
            unsafe { fill.launch(&other, config, (&mut pooled, 5, 64)) }?;
            // SAFETY: `fill` writes exactly the words of the buffer.
            unsafe { fill.launch(&other, config, (&mut plain, 6, 64)) }?;
            assert_eq!(pooled.to_vec()?, [5; 64]);
            assert_eq!(plain.to_vec()?, [6; 64]);
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// A created context is not current on any thread and supports every operation.
#[driver_test]
fn created_context_supports_every_operation(test: &TestDriver) -> TestResult {
    let context = created(test)?;
    assert!(Context::current_raw(test.driver())?.is_null());
    assert_eq!(context.kind(), ContextKind::Created);
    assert_eq!(context.device().as_raw(), test.device().as_raw());
    assert_ne!(context.as_raw(), test.context().as_raw());
    use_every_kind(&context)?;
    context.close()?;
    Ok(())
}

/// A context is created by the best function of the driver.
#[test]
fn creation_uses_newest_function() -> TestResult {
    for (version, function) in [
        (CudaVersion::new(13, 0), Function::cuCtxCreate_v4),
        (CudaVersion::new(12, 5), Function::cuCtxCreate_v4),
        (CudaVersion::new(12, 4), Function::cuCtxCreate_v2),
        (CudaVersion::new(11, 8), Function::cuCtxCreate_v2),
    ] {
        on_simulator(
            Config::new().with_driver_version(version),
            |test, simulator| -> TestResult {
                drop(created(test)?);
                assert_eq!(simulator.calls(function), 1, "{version}");
                Ok(())
            },
        )?;
    }
    Ok(())
}

#[test]
fn unlimitable_context_is_refused() {
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

/// Flags that exclude each other are an error that names them.
#[driver_test]
fn exclusive_flags_are_named_by_the_error(test: &TestDriver) {
    let flags = ContextFlags::SPIN | ContextFlags::YIELD;
    let error = test
        .device()
        .create_context(ContextOptions::new().with_flags(flags))
        .expect_err("they are mutually exclusive");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert!(error.to_string().contains("SPIN | YIELD"), "{error}");
}

#[driver_test]
fn context_flags_are_read_and_replaced(test: &TestDriver) -> TestResult {
    let options = ContextOptions::new().with_flags(ContextFlags::BLOCKING_SYNC);
    let context = test.device().create_context(options)?;
    assert!(context.flags()?.contains(ContextFlags::BLOCKING_SYNC));
    context.set_flags(ContextFlags::SPIN)?;
    let flags = context.flags()?;
    assert!(
        flags.contains(ContextFlags::SPIN) && !flags.contains(ContextFlags::BLOCKING_SYNC),
        "{flags:?}"
    );
    Ok(())
}

/// A context whose creation cannot be finished is destroyed.
#[simulator_test]
fn partially_created_context_is_destroyed(test: &TestDriver, simulator: &Simulator) -> TestResult {
    simulator.inject(
        Fault::on(Function::cuCtxPopCurrent_v2).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let error = test
        .device()
        .create_context(ContextOptions::new())
        .expect_err("it could not be popped");
    assert_eq!(error.function(), Some(Function::cuCtxPopCurrent_v2));
    assert_eq!(simulator.live_handles().contexts, 0);
    assert!(Context::current_raw(test.driver())?.is_null());
    Ok(())
}

/// A context that the driver does not destroy is returned by close.
#[simulator_test]
fn close_returns_an_undestroyed_context(test: &TestDriver, simulator: &Simulator) -> TestResult {
    simulator.inject(
        Fault::on(Function::cuCtxDestroy_v2).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let (context, error) = created(test)?
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuCtxDestroy_v2));
    context.synchronize()?;
    Ok(())
}

/// A created context lives as long as the objects created from it.
#[driver_test]
fn created_context_outlives_its_handles(test: &TestDriver) -> TestResult {
    let stream = created(test)?.stream()?;
    let buffer = DeviceBuffer::from_slice(&stream, &[7_u8; 100])?;
    drop(stream);
    assert_eq!(buffer.to_vec()?, [7; 100]);
    Ok(())
}

#[driver_test]
fn contexts_have_unique_ids(test: &TestDriver) -> TestResult {
    let first = created(test)?;
    let second = created(test)?;
    let number = |context: &Context| context.id();
    assert_ne!(number(&first)?, number(&second)?);
    assert_ne!(number(&first)?, number(&test.context())?);
    assert_eq!(first.api_version()?, 3020);
    assert_eq!(first.green_id()?, None);
    Ok(())
}

#[driver_test]
fn context_settings_are_read_and_set(test: &TestDriver) -> TestResult {
    let context = created(test)?;
    assert_eq!(context.cache_config()?, CacheConfig::NoPreference);
    context.set_cache_config(CacheConfig::PreferL1)?;
    assert_eq!(context.cache_config()?, CacheConfig::PreferL1);
    let error = context
        .set_cache_config(CacheConfig::Unknown(99))
        .expect_err("there is no such preference");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert_eq!(context.cache_config()?, CacheConfig::PreferL1);
    context.set_shared_memory_config(SharedMemoryConfig::EightByteBanks)?;
    let banks = context.shared_memory_config()?;
    assert_eq!(
        banks,
        SharedMemoryConfig::FourByteBanks,
        "current devices have a fixed width"
    );
    context
        .set_shared_memory_config(SharedMemoryConfig::Unknown(99))
        .expect_err("there is no such width");
    context.reset_persisting_l2()?;
    context.flush_rdma_writes(RdmaScope::Owner)?;
    let all = test
        .device()
        .attribute(curium_driver::DeviceAttribute::MULTIPROCESSOR_COUNT)?;
    assert_eq!(context.affinity()?, all, "the context is not limited");
    Ok(())
}

/// Priorities of streams are a range around the default.
#[driver_test]
fn stream_priorities_surround_the_default(test: &TestDriver) -> TestResult {
    let range = test.context().stream_priorities()?;
    assert!(range.greatest <= 0 && range.least >= 0, "{range:?}");
    assert!(range.numbers().contains(&0));
    assert_eq!(range.clamp(i32::MIN), range.greatest);
    assert_eq!(range.clamp(i32::MAX), range.least);
    assert_eq!(range.clamp(0), 0);
    Ok(())
}

#[driver_test]
fn context_event_waits_for_every_stream(test: &TestDriver) -> TestResult {
    let context = created(test)?;
    let stream = context.stream()?;
    let other = context.stream()?;
    let event = Event::new(&context, EventFlags::DISABLE_TIMING)?;
    let gate = Gate::on(&stream);
    context.record_event(&event)?;
    assert!(
        !event.is_finished()?,
        "the work of one stream has not completed"
    );
    context.wait_event(&event)?;
    let behind = Event::new(&context, EventFlags::DISABLE_TIMING)?;
    behind.record(&other)?;
    assert!(
        !behind.is_finished()?,
        "the other stream waits for the event"
    );
    gate.open();
    behind.synchronize()?;
    assert!(event.is_finished()?);
    Ok(())
}

/// An event of another context is not recorded but waited for.
#[driver_test]
fn foreign_event_is_waited_for_but_not_recorded(test: &TestDriver) -> TestResult {
    let context = created(test)?;
    let other = test.context();
    let event = Event::new(&other, EventFlags::DISABLE_TIMING)?;
    let error = context
        .record_event(&event)
        .expect_err("the event belongs to another context");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_HANDLE));
    context.wait_event(&event)?;
    Ok(())
}

#[driver_test]
fn context_is_passed_to_other_code_and_back(test: &TestDriver) -> TestResult {
    let context = created(test)?;
    let stream = context.stream()?;
    let context = context
        .into_raw()
        .expect_err("the stream keeps the context");
    drop(stream);
    let raw = context.into_raw().expect("nothing keeps the context");
    assert!(matches!(raw, RawContext::Created(_)), "{raw:?}");
    // SAFETY: the handle was returned by `into_raw`, and has no other owner.
    let context = unsafe { Context::from_raw(test.driver(), raw) }?;
    assert_eq!(context.kind(), ContextKind::Created);
    use_every_kind(&context)?;

    let raw = test
        .context()
        .into_raw()
        .expect("nothing keeps the context");
    // SAFETY: the handle was returned by `into_raw`, and this retention has no other owner.
    let primary = unsafe { Context::from_raw(test.driver(), raw) }?;
    assert_eq!(primary.kind(), ContextKind::Primary);
    use_every_kind(&primary)?;
    Ok(())
}

#[driver_test]
fn borrowed_context_is_not_destroyed(test: &TestDriver) -> TestResult {
    let owner = CreatedContext::new(&test.device());
    let borrow = || -> TestResult<_> {
        // SAFETY: `owner` is dropped last.
        Ok(unsafe { Context::from_raw(test.driver(), RawContext::Borrowed(owner.as_raw())) }?)
    };
    let first = borrow()?;
    assert_eq!(first.kind(), ContextKind::Borrowed);
    assert_eq!(first.device().as_raw(), test.device().as_raw());
    use_every_kind(&first)?;
    first.close()?;
    use_every_kind(&borrow()?)?;
    assert_eq!(
        borrow()?.into_raw().expect("nothing keeps it"),
        RawContext::Borrowed(owner.as_raw())
    );
    Ok(())
}

/// A borrowed context keeps its owner for as long as anything is left.
#[driver_test]
fn borrowed_context_keeps_its_owner(test: &TestDriver) -> TestResult {
    let owner = Arc::new(());
    let foreign = CreatedContext::new(&test.device());
    let held = Arc::clone(&owner);
    // SAFETY: `foreign` is dropped last.
    let context = unsafe { Context::borrow_raw(test.driver(), foreign.as_raw(), held) };
    let stream = context?.stream()?;
    assert_eq!(Arc::strong_count(&owner), 2);
    drop(stream);
    assert_eq!(Arc::strong_count(&owner), 1);
    Ok(())
}

#[simulator_test]
fn handle_that_is_no_context_is_refused(test: &TestDriver, _: &Simulator) {
    let nothing = std::ptr::without_provenance_mut(0x1000);
    // SAFETY: the simulator validates handles.
    let result = unsafe { Context::from_raw(test.driver(), RawContext::Borrowed(nothing)) };
    let error = result.expect_err("there is no such context");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT));
}

/// Options that exclude each other are refused before any driver call.
#[simulator_test]
fn exclusive_options_make_no_driver_call(test: &TestDriver, simulator: &Simulator) {
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
}

#[driver_test]
fn auto_scheduling_is_no_scheduling_flag(test: &TestDriver) -> TestResult {
    let options = ContextOptions::new().with_flags(ContextFlags::BLOCKING_SYNC);
    let context = test.device().create_context(options)?;
    context.set_flags(ContextFlags::AUTO)?;
    let flags = context.flags()?;
    let scheduling = ContextFlags::SPIN | ContextFlags::YIELD | ContextFlags::BLOCKING_SYNC;
    assert!(
        (flags & scheduling).is_empty() && ContextFlags::AUTO.is_empty(),
        "{flags:?}"
    );
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::{
        CacheConfig, Context, ContextFlags, ContextOptions, RawContext, RdmaScope,
        SharedMemoryConfig,
    };

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
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

    inventory::submit! { Operations::Common(OPERATIONS) }
}
