//! [`MemoryPool`]: properties, attributes, access and sharing.

#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

#[cfg(target_os = "linux")]
use curium_driver::AsRawStream as _;
use curium_driver::MemoryHandleTypes;
use curium_driver::{ContextOptions, DevicePointer, Error, Function, Result, Stream, call};
#[cfg(target_os = "linux")]
use curium_memory::PoolPointerHandle;
use curium_memory::{
    DeviceBuffer, MemoryAccess, MemoryLocation, MemoryPool, PoolKind, PoolOptions, Resource,
};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::{CUcontext, CUctx_st, CUpointer_attribute, CUresult, CudaVersion};
use curium_tests::{
    TestDriver, TestResult, driver_test, on_driver, on_simulator, shared_handle_types,
    simulator_test,
};

const INVALID: Option<CUresult> = Some(CUresult::CUDA_ERROR_INVALID_VALUE);

/// Allocates from a pool, uses the memory and frees it.
fn round(pool: &MemoryPool, stream: &Stream, bytes: usize) -> Result<()> {
    let pointer = pool.allocate(stream, bytes, 256)?;
    // SAFETY: the memory has these bytes, for use on this stream.
    unsafe {
        call!(
            stream.driver(),
            cuMemsetD8Async(pointer.as_raw(), 1, bytes, stream.as_raw())
        )
    }?;
    // SAFETY: the memory was allocated from this pool with this size and alignment, and is used
    // only on this stream.
    unsafe { pool.deallocate(stream, pointer, bytes, 256) }?;
    stream.synchronize()
}

fn pool(test: &TestDriver) -> TestResult<MemoryPool> {
    Ok(MemoryPool::new(&test.device())?)
}

/// A pool gives memory counts it and keeps it until it is trimmed.
#[driver_test]
fn pool_keeps_memory_until_trimmed(test: &TestDriver) -> TestResult {
    let pool = pool(test)?;
    let stream = test.stream();
    let pointer = pool.allocate(&stream, 1 << 20, 256)?;
    let statistics = pool.statistics()?;
    assert!(
        statistics.used >= 1 << 20 && statistics.reserved >= statistics.used,
        "{statistics:?}"
    );
    // SAFETY: the memory was allocated from this pool with this size and alignment, and is not in
    // use.
    unsafe { pool.deallocate(&stream, pointer, 1 << 20, 256) }?;
    stream.synchronize()?;
    let statistics = pool.statistics()?;
    assert_eq!(statistics.used, 0);
    assert!(
        statistics.reserved > 0,
        "the pool released its memory without a call"
    );
    assert!(
        statistics.used_high >= 1 << 20 && statistics.reserved_high >= statistics.reserved,
        "{statistics:?}"
    );
    pool.trim_to(0)?;
    pool.reset_high_watermarks()?;
    let statistics = pool.statistics()?;
    assert_eq!(
        (
            statistics.reserved,
            statistics.used_high,
            statistics.reserved_high
        ),
        (0, 0, 0)
    );
    Ok(())
}

#[driver_test]
fn attributes_are_read_back_as_set(test: &TestDriver) -> TestResult {
    let pool = pool(test)?;
    assert_eq!(pool.release_threshold()?, u64::MAX);
    pool.set_release_threshold(5 << 20)?;
    assert_eq!(pool.release_threshold()?, 5 << 20);
    for is_set in [false, true] {
        pool.set_reuse_follow_event_dependencies(is_set)?;
        pool.set_reuse_allow_opportunistic(!is_set)?;
        pool.set_reuse_allow_internal_dependencies(is_set)?;
        assert_eq!(pool.reuse_follow_event_dependencies()?, is_set);
        assert_eq!(pool.reuse_allow_opportunistic()?, !is_set);
        assert_eq!(pool.reuse_allow_internal_dependencies()?, is_set);
    }
    Ok(())
}

#[test]
fn newer_pool_returns_options() -> TestResult {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 1)),
        |test, _| -> TestResult {
            let device = test.device();
            let options = PoolOptions::new(&device)
                .with_max_bytes(64 << 20)
                .with_handle_types(shared_handle_types());
            let pool = MemoryPool::with_options(test.driver(), &options)?;
            assert_eq!(pool.kind()?, PoolKind::Pinned);
            assert_eq!(pool.location()?, Some(MemoryLocation::from(&device)));
            assert_eq!(pool.handle_types()?, shared_handle_types());
            assert_eq!(pool.max_bytes()?, Some(64 << 20));
            assert!(!pool.is_for_hardware_decompression()?);
            let managed = MemoryPool::with_options(test.driver(), &PoolOptions::managed(None))?;
            assert_eq!(managed.kind()?, PoolKind::Managed);
            assert_eq!(managed.location()?, None);
            Ok(())
        },
    )?;
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 0)),
        |test, _| -> TestResult {
            assert_eq!(
                pool(test)?
                    .kind()
                    .expect_err("the driver is too old")
                    .code(),
                INVALID
            );
            Ok(())
        },
    )?;
    Ok(())
}

#[driver_test]
fn pool_refuses_to_grow_beyond_its_maximum(test: &TestDriver) -> TestResult {
    let options = PoolOptions::new(&test.device()).with_max_bytes(32 << 20);
    let pool = MemoryPool::with_options(test.driver(), &options)?;
    round(&pool, &test.stream(), 1 << 20)?;
    let error = round(&pool, &test.stream(), 256 << 20).expect_err("the pool is smaller");
    assert!(error.is_out_of_memory(), "{error}");
    assert!(error.to_string().contains("268435456 bytes"), "{error}");
    Ok(())
}

/// A current pool is the default one until it is set and after that pool ends.
#[driver_test]
fn current_pool_defaults_until_set(test: &TestDriver) -> TestResult {
    let device = test.device();
    let default = MemoryPool::default_for(&device)?;
    let before = MemoryPool::current_for(&device)?;
    let pool = pool(test)?;
    pool.set_current_for(&device)?;
    let current = MemoryPool::current_for(&device)?;
    assert_eq!(current.as_raw(), pool.as_raw());
    let stream = test.stream();
    let buffer = DeviceBuffer::<u8>::zeroed(&stream, 1000)?;
    assert!(pool.statistics()?.used >= 1000);
    drop(buffer);
    stream.synchronize()?;
    before.set_current_for(&device)?;
    assert_eq!(MemoryPool::current_for(&device)?.as_raw(), default.as_raw());
    // Borrowed pools are not destroyed.
    test.assert_calls(Function::cuMemPoolDestroy, 0, || -> TestResult<_> {
        default.close()?;
        drop(before);
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn memory_outlives_the_pool_that_it_came_from(test: &TestDriver) -> TestResult {
    let pool = pool(test)?;
    let stream = test.stream();
    let pointer = pool.allocate(&stream, 64, 64)?;
    let clone = pool.clone();
    let (pool, error) = pool.close().expect_err("there is a clone").into_parts();
    assert!(error.to_string().contains("1 other owners"), "{error}");
    drop(clone);
    test.assert_calls(Function::cuMemPoolDestroy, 1, || -> TestResult<_> {
        pool.close()?;
        Ok(())
    })?;
    // SAFETY: the memory is live and not in use.
    unsafe {
        call!(
            test.driver(),
            cuMemFreeAsync(pointer.as_raw(), stream.as_raw())
        )
    }?;
    stream.synchronize()?;
    Ok(())
}

/// Memory belongs to no context and outlives that of its stream.
#[driver_test]
fn pool_memory_outlives_its_streams_context(test: &TestDriver) -> TestResult {
    let pool = pool(test)?;
    let context = test.device().create_context(ContextOptions::new())?;
    let stream = context.stream()?;
    let pointer = pool.allocate(&stream, 1 << 16, 256)?;
    // SAFETY: the memory has these bytes, for use on this stream.
    unsafe {
        call!(
            test.driver(),
            cuMemsetD8Async(pointer.as_raw(), 7, 1 << 16, stream.as_raw())
        )
    }?;
    assert_eq!(
        owning_context(test, pointer)?,
        None,
        "the context is live, but not the owner"
    );
    stream.synchronize()?;
    drop((stream, context));

    let stream = test.stream();
    let mut bytes = vec![0_u8; 1 << 16];
    let output = bytes.as_mut_ptr().cast();
    // SAFETY: the memory is live and has these bytes, and so has the vector, which lives until the
    // copy has ended.
    unsafe {
        call!(
            test.driver(),
            cuMemcpyDtoHAsync_v2(output, pointer.as_raw(), 1 << 16, stream.as_raw())
        )
    }?;
    stream.synchronize()?;
    assert!(bytes.iter().all(|byte| *byte == 7));
    // SAFETY: the memory was allocated from this pool with this size and alignment, and its work
    // has ended.
    unsafe { pool.deallocate(&stream, pointer, 1 << 16, 256) }?;
    stream.synchronize()?;
    assert_eq!(pool.statistics()?.used, 0);
    Ok(())
}

/// Returns the context that the driver names as the owner of memory.
fn owning_context(
    test: &TestDriver,
    pointer: DevicePointer<u8>,
) -> TestResult<Option<NonNull<CUctx_st>>> {
    let mut context: CUcontext = ptr::null_mut();
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
    // SAFETY: the place has the attribute's type.
    unsafe {
        call!(
            test.driver(),
            cuPointerGetAttribute((&raw mut context).cast(), attribute, pointer.as_raw())
        )
    }?;
    Ok(NonNull::new(context))
}

#[test]
fn pool_access_matches_device() -> TestResult {
    on_driver(|test| -> TestResult {
        let pool = pool(test)?;
        let device = test.device();
        assert_eq!(pool.access(&device)?, MemoryAccess::ReadWrite);
        pool.set_access(&device, MemoryAccess::ReadWrite)?;
        let error = pool
            .set_access(MemoryLocation::Device(99), MemoryAccess::ReadWrite)
            .expect_err("no such device");
        assert!(error.to_string().contains("device 99"), "{error}");
        Ok(())
    })?;
    on_simulator(Config::new().with_devices(2), |test, _| -> TestResult {
        let pool = pool(test)?;
        let other = test.driver().device(1)?;
        assert_eq!(pool.access(&other)?, MemoryAccess::None);
        pool.set_access(&other, MemoryAccess::ReadWrite)?;
        assert_eq!(pool.access(&other)?, MemoryAccess::ReadWrite);
        Ok(())
    })?;
    Ok(())
}

/// Memory of a shared pool is opened by another process.
#[cfg(target_os = "linux")]
#[simulator_test]
fn shared_pool_memory_is_opened_elsewhere(owner: &TestDriver, _: &Simulator) -> TestResult {
    on_simulator(Config::new(), |other, _| -> TestResult {
        let options = PoolOptions::new(&owner.device())
            .with_handle_types(MemoryHandleTypes::POSIX_FILE_DESCRIPTOR);
        let pool = MemoryPool::with_options(owner.driver(), &options)?;
        let descriptor = pool.export_fd()?;
        let imported = MemoryPool::import_fd(other.driver(), descriptor.as_fd())?;
        let stream = owner.stream();
        let pointer = pool.allocate(&stream, 64, 64)?;
        // SAFETY: the memory has these bytes, for use on this stream.
        unsafe {
            call!(
                owner.driver(),
                cuMemsetD8Async(pointer.as_raw(), 9, 64, stream.as_raw())
            )
        }?;
        stream.synchronize()?;
        let name = pool.export_pointer(pointer)?;
        let name = PoolPointerHandle::from_bytes(name.to_bytes());
        let memory = imported.import_pointer(name)?;
        let mut bytes = [0_u8; 64];
        let peer_stream = other.stream();
        let to = bytes.as_mut_ptr().cast();
        // SAFETY: both sides have these bytes, and the stream is synchronized.
        unsafe {
            call!(
                other.driver(),
                cuMemcpyDtoHAsync_v2(to, memory.as_pointer().as_raw(), 64, peer_stream.as_raw())
            )
        }?;
        peer_stream.synchronize()?;
        assert_eq!(bytes, [9; 64]);
        memory.close()?;
        let error = imported
            .allocate(&peer_stream, 64, 64)
            .expect_err("the pool belongs to another process");
        assert_eq!(error.code(), INVALID);
        // SAFETY: the memory was allocated from this pool with this size and alignment, and is not
        // in use.
        unsafe { pool.deallocate(&stream, pointer, 64, 64) }?;
        Ok(())
    })?;
    Ok(())
}

/// A pool that was not made to be shared is not exported.
#[cfg(target_os = "linux")]
#[driver_test]
fn unshared_pool_is_not_exported(test: &TestDriver) -> TestResult {
    let pool = pool(test)?;
    let stream = test.stream();
    let error = pool
        .export_fd()
        .expect_err("the pool belongs to this process");
    assert_eq!(
        error.function(),
        Some(Function::cuMemPoolExportToShareableHandle)
    );
    let pointer = pool.allocate(&stream, 64, 64)?;
    let error = pool
        .export_pointer(pointer)
        .expect_err("the pool belongs to this process");
    assert!(
        error.to_string().contains(&format!("{pointer:?}")),
        "{error}"
    );
    // SAFETY: the memory was allocated from this pool with this size and alignment, and is not in
    // use.
    unsafe { pool.deallocate(&stream, pointer, 64, 64) }?;
    Ok(())
}

/// Memory of a pool has a name once the pool was exported.
#[cfg(target_os = "linux")]
#[driver_test]
fn exported_pool_memory_has_a_handle(test: &TestDriver) -> TestResult {
    let options = PoolOptions::new(&test.device())
        .with_handle_types(MemoryHandleTypes::POSIX_FILE_DESCRIPTOR);
    let pool = MemoryPool::with_options(test.driver(), &options)?;
    let stream = test.stream();
    let pointer = pool.allocate(&stream, 64, 64)?;
    stream.synchronize()?;
    let error = pool
        .export_pointer(pointer)
        .expect_err("the pool was not exported");
    assert_eq!(error.code(), INVALID);
    assert!(
        error
            .to_string()
            .contains("only memory of an exported device pool"),
        "{error}"
    );
    let descriptor = pool.export_fd()?;
    pool.export_pointer(pointer)?;
    // SAFETY: the memory was allocated from this pool with this size and alignment, and is not in
    // use.
    unsafe { pool.deallocate(&stream, pointer, 64, 64) }?;
    drop(descriptor);
    Ok(())
}

#[simulator_test]
fn host_pool_memory_is_read_by_the_host(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let managed = PoolOptions::managed(Some(MemoryLocation::from(&test.device())));
    for (options, needs_access) in [
        (PoolOptions::new(MemoryLocation::Host), true),
        (PoolOptions::new(MemoryLocation::HostNuma(0)), true),
        (managed, false),
    ] {
        let pool = MemoryPool::with_options(test.driver(), &options)?;
        if needs_access {
            pool.set_access(&test.device(), MemoryAccess::ReadWrite)?;
        }
        let pointer = pool.allocate(&stream, 16, 16)?;
        // SAFETY: the memory has these bytes, for use on this stream.
        unsafe {
            call!(
                test.driver(),
                cuMemsetD8Async(pointer.as_raw(), 6, 16, stream.as_raw())
            )
        }?;
        stream.synchronize()?;
        let bytes: *const [u8; 16] = ptr::with_exposed_provenance(pointer.as_raw() as usize);
        // SAFETY: the memory has these bytes at the host's address too, and the device has finished
        // with it.
        assert_eq!(unsafe { bytes.read() }, [6; 16]);
        // SAFETY: the memory was allocated from this pool with this size and alignment, and is not
        // in use.
        unsafe { pool.deallocate(&stream, pointer, 16, 16) }?;
    }
    Ok(())
}

#[simulator_test]
fn location_keeps_its_current_pool(test: &TestDriver, _: &Simulator) -> TestResult {
    let driver = test.driver();
    let host = Some(MemoryLocation::Host);
    let kind = PoolKind::Pinned;
    let default = MemoryPool::default_for_location(driver, host, kind)?;
    let current = MemoryPool::current_for_location(driver, host, kind)?;
    assert_eq!(current.as_raw(), default.as_raw());
    let pool = MemoryPool::with_options(driver, &PoolOptions::new(MemoryLocation::Host))?;
    pool.set_current_for_location(host, kind)?;
    let current = MemoryPool::current_for_location(driver, host, kind)?;
    assert_eq!(current.as_raw(), pool.as_raw());
    let error = pool
        .set_current_for_location(None, PoolKind::Managed)
        .expect_err("the pool has another location");
    assert_eq!(error.code(), INVALID);
    Ok(())
}

#[simulator_test]
fn pool_is_ended_when_setting_it_up_fails(test: &TestDriver, simulator: &Simulator) {
    simulator.inject(
        Fault::on(Function::cuMemPoolSetAttribute).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
    );
    let error = MemoryPool::new(&test.device()).expect_err("the injected fault occurs");
    assert_eq!(error.function(), Some(Function::cuMemPoolSetAttribute));
    assert!(
        error.to_string().contains("release threshold of a pool"),
        "{error}"
    );
    assert_eq!(simulator.live_handles().pools, 0);
}

#[driver_test]
fn sizes_and_alignments_that_cannot_be_are_errors(test: &TestDriver) -> TestResult {
    let pool = pool(test)?;
    let stream = test.stream();
    for (bytes, alignment) in [(0, 16), (16, 0), (16, 512), (usize::MAX, 16)] {
        let error = pool
            .allocate(&stream, bytes, alignment)
            .expect_err("the request is refused");
        assert!(matches!(error, Error::Argument(_)), "{error}");
    }
    Ok(())
}

pub(crate) mod operations {
    #[cfg(target_os = "linux")]
    use std::os::fd::AsFd;

    use curium_driver::Result;
    #[cfg(target_os = "linux")]
    use curium_memory::PoolMemory;
    use curium_memory::virtual_memory::FabricHandle;
    use curium_memory::{MemoryAccess, MemoryLocation, MemoryPool, PoolKind, PoolOptions};
    use curium_tests::shared_handle_types;

    #[cfg(target_os = "linux")]
    use crate::operations::{Block, OtherProcess, block};
    use crate::operations::{
        Fixture, Operation, Operations, allocate, allocate_and_free, boxed, made,
    };

    const OPERATIONS: &[Operation] = &[
        ("MemoryPool::new", |fixture| {
            made(MemoryPool::new(&fixture.device)?)
        }),
        ("MemoryPool::default_for", |fixture| {
            made(MemoryPool::default_for(&fixture.device)?)
        }),
        ("MemoryPool::current_for", |fixture| {
            made(MemoryPool::current_for(&fixture.device)?)
        }),
        ("MemoryPool::set_current_for", |fixture| {
            made(MemoryPool::current_for(&fixture.device)?.set_current_for(&fixture.device)?)
        }),
        ("MemoryPool::release_threshold", |fixture| {
            made(pool(fixture)?.release_threshold()?)
        }),
        (
            "MemoryPool::set_reuse_allow_internal_dependencies",
            |fixture| made(pool(fixture)?.set_reuse_allow_internal_dependencies(true)?),
        ),
        ("MemoryPool::statistics", |fixture| {
            made(pool(fixture)?.statistics()?)
        }),
        ("MemoryPool::reset_high_watermarks", |fixture| {
            made(pool(fixture)?.reset_high_watermarks()?)
        }),
        ("MemoryPool::trim_to", |fixture| {
            made(pool(fixture)?.trim_to(0)?)
        }),
        ("MemoryPool::access", |fixture| {
            made(pool(fixture)?.access(&fixture.device)?)
        }),
        ("MemoryPool::set_access", |fixture| {
            made(pool(fixture)?.set_access(&fixture.device, MemoryAccess::ReadWrite)?)
        }),
        #[cfg(target_os = "linux")]
        ("MemoryPool::export_fd", |fixture| {
            made(pool(fixture)?.export_fd()?)
        }),
        ("MemoryPool::close", |fixture| {
            pool(fixture)?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("MemoryPool::with_options", |fixture| made(pool(fixture)?)),
        ("MemoryPool::allocate", |fixture| {
            allocate(fixture, MemoryPool::new(&fixture.device)?)
        }),
        ("MemoryPool::deallocate", |fixture| {
            allocate_and_free(fixture, MemoryPool::new(&fixture.device)?)
        }),
        ("MemoryPool::default_for_location", |fixture| {
            made(MemoryPool::default_for_location(
                &fixture.driver,
                here(fixture),
                KIND,
            )?)
        }),
        ("MemoryPool::current_for_location", |fixture| {
            made(MemoryPool::current_for_location(
                &fixture.driver,
                here(fixture),
                KIND,
            )?)
        }),
        ("MemoryPool::set_current_for_location", |fixture| {
            let current = MemoryPool::current_for(&fixture.device)?;
            made(current.set_current_for_location(here(fixture), KIND)?)
        }),
        ("MemoryPool::set_release_threshold", |fixture| {
            made(pool(fixture)?.set_release_threshold(1 << 20)?)
        }),
        ("MemoryPool::reuse_follow_event_dependencies", |fixture| {
            made(pool(fixture)?.reuse_follow_event_dependencies()?)
        }),
        (
            "MemoryPool::set_reuse_follow_event_dependencies",
            |fixture| made(pool(fixture)?.set_reuse_follow_event_dependencies(false)?),
        ),
        ("MemoryPool::reuse_allow_opportunistic", |fixture| {
            made(pool(fixture)?.reuse_allow_opportunistic()?)
        }),
        ("MemoryPool::set_reuse_allow_opportunistic", |fixture| {
            made(pool(fixture)?.set_reuse_allow_opportunistic(false)?)
        }),
        ("MemoryPool::reuse_allow_internal_dependencies", |fixture| {
            made(pool(fixture)?.reuse_allow_internal_dependencies()?)
        }),
        #[cfg(target_os = "linux")]
        ("MemoryPool::export_pointer", |fixture| {
            let memory = block(&fixture.stream, pool(fixture)?)?;
            // Memory can be exported only after its pool was shared.
            let descriptor = memory.resource.export_fd()?;
            let name = memory.resource.export_pointer(memory.pointer)?;
            made((memory, descriptor, name))
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SHARED: &[Operation] = &[
        #[cfg(target_os = "linux")]
        ("MemoryPool::import_fd", |fixture| {
            made(import(fixture)?.imported)
        }),
        #[cfg(target_os = "linux")]
        ("MemoryPool::import_pointer", |fixture| made(open(fixture)?)),
        #[cfg(target_os = "linux")]
        ("PoolMemory::close", |fixture| {
            let Opened { memory, shared } = open(fixture)?;
            memory.close()?;
            made(shared)
        }),
    ];

    inventory::submit! { Operations::Shared(SHARED) }

    const NEWER: &[Operation] = &[
        ("MemoryPool::kind", |fixture| made(pool(fixture)?.kind()?)),
        ("MemoryPool::location", |fixture| {
            made(pool(fixture)?.location()?)
        }),
        ("MemoryPool::handle_types", |fixture| {
            made(pool(fixture)?.handle_types()?)
        }),
        ("MemoryPool::max_bytes", |fixture| {
            made(pool(fixture)?.max_bytes()?)
        }),
        ("MemoryPool::is_for_hardware_decompression", |fixture| {
            made(pool(fixture)?.is_for_hardware_decompression()?)
        }),
    ];

    inventory::submit! { Operations::Newer(NEWER) }

    const SOLITARY: &[Operation] = &[
        ("MemoryPool::export_fabric", |fixture| {
            made(pool(fixture)?.export_fabric()?)
        }),
        ("MemoryPool::import_fabric", |fixture| {
            made(MemoryPool::import_fabric(
                &fixture.driver,
                FabricHandle::from_bytes([1; 64]),
            )?)
        }),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }

    fn pool(fixture: &Fixture) -> Result<MemoryPool> {
        let options = PoolOptions::new(&fixture.device).with_handle_types(shared_handle_types());
        MemoryPool::with_options(&fixture.driver, &options)
    }

    const KIND: PoolKind = PoolKind::Pinned;

    fn here(fixture: &Fixture) -> Option<MemoryLocation> {
        Some(MemoryLocation::from(&fixture.device))
    }

    #[cfg(target_os = "linux")]
    fn import(fixture: &Fixture) -> Result<SharedPool> {
        let owner = OtherProcess::new(fixture)?;
        let options = PoolOptions::new(&owner.device).with_handle_types(shared_handle_types());
        let theirs = MemoryPool::with_options(&owner.driver, &options)
            .and_then(|pool| block(&owner.stream, pool))?;
        let descriptor = theirs.resource.export_fd()?;
        let imported = MemoryPool::import_fd(&fixture.driver, descriptor.as_fd())?;
        Ok(SharedPool {
            imported,
            theirs,
            _owner: owner,
        })
    }

    #[cfg(target_os = "linux")]
    fn open(fixture: &Fixture) -> Result<Opened> {
        let shared = import(fixture)?;
        let name = shared
            .theirs
            .resource
            .export_pointer(shared.theirs.pointer)?;
        Ok(Opened {
            memory: shared.imported.import_pointer(name)?,
            shared,
        })
    }

    /// Memory of such a pool.
    #[cfg(target_os = "linux")]
    struct Opened {
        memory: PoolMemory,
        shared: SharedPool,
    }

    /// A pool of another process, on both sides.
    #[cfg(target_os = "linux")]
    struct SharedPool {
        imported: MemoryPool,
        theirs: Block<MemoryPool>,
        _owner: OtherProcess,
    }
}
