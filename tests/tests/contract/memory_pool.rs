//! [`MemoryPool`]: properties, attributes, access and sharing.

#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

#[cfg(target_os = "linux")]
use curium_driver::MemoryHandleTypes;
use curium_driver::{ContextOptions, DevicePointer, Error, Function, Result, Stream, call};
#[cfg(target_os = "linux")]
use curium_memory::PoolPointerHandle;
use curium_memory::{
    DeviceBuffer, MemoryAccess, MemoryLocation, MemoryPool, PoolKind, PoolOptions, Resource,
};
use curium_sim::{Config, Fault};
use curium_sys::{CUcontext, CUctx_st, CUpointer_attribute, CUresult, CudaVersion};
use curium_tests::{TestDriver, on_driver, on_simulator, shared_handle_types};

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
    // SAFETY: the memory was allocated from this pool with this size and alignment, and is used only on this stream.
    unsafe { pool.deallocate(stream, pointer, bytes, 256) }?;
    stream.synchronize()
}

fn pool(test: &TestDriver) -> MemoryPool {
    MemoryPool::new(&test.device()).expect("the device has pools")
}

#[test]
fn pool_gives_memory_counts_it_and_keeps_it_until_it_is_trimmed() {
    on_driver(|test| {
        let (pool, stream) = (pool(test), test.stream());
        let pointer = pool
            .allocate(&stream, 1 << 20, 256)
            .expect("memory suffices");
        let statistics = pool.statistics().expect("a pool counts");
        assert!(
            statistics.used >= 1 << 20 && statistics.reserved >= statistics.used,
            "{statistics:?}"
        );
        // SAFETY: the memory was allocated from this pool with this size and alignment, and is not in use.
        unsafe { pool.deallocate(&stream, pointer, 1 << 20, 256) }
            .expect("the memory can be freed");
        stream.synchronize().expect("the stream works");
        let statistics = pool.statistics().expect("a pool counts");
        assert_eq!(statistics.used, 0);
        assert!(
            statistics.reserved > 0,
            "the pool released its memory without a call"
        );
        assert!(
            statistics.used_high >= 1 << 20 && statistics.reserved_high >= statistics.reserved,
            "{statistics:?}"
        );
        pool.trim_to(0).expect("a pool can be trimmed");
        pool.reset_high_watermarks()
            .expect("the maxima can be reset");
        let statistics = pool.statistics().expect("a pool counts");
        assert_eq!(
            (
                statistics.reserved,
                statistics.used_high,
                statistics.reserved_high
            ),
            (0, 0, 0)
        );
    });
}

#[test]
fn attributes_are_read_back_as_set() {
    on_driver(|test| {
        let pool = pool(test);
        assert_eq!(
            pool.release_threshold().expect("it is an attribute"),
            u64::MAX
        );
        pool.set_release_threshold(5 << 20).expect("it can be set");
        assert_eq!(
            pool.release_threshold().expect("it is an attribute"),
            5 << 20
        );
        for is_set in [false, true] {
            pool.set_reuse_follow_event_dependencies(is_set)
                .expect("it can be set");
            pool.set_reuse_allow_opportunistic(!is_set)
                .expect("it can be set");
            pool.set_reuse_allow_internal_dependencies(is_set)
                .expect("it can be set");
            assert_eq!(
                pool.reuse_follow_event_dependencies()
                    .expect("it is an attribute"),
                is_set
            );
            assert_eq!(
                pool.reuse_allow_opportunistic()
                    .expect("it is an attribute"),
                !is_set
            );
            assert_eq!(
                pool.reuse_allow_internal_dependencies()
                    .expect("it is an attribute"),
                is_set
            );
        }
    });
}

#[test]
fn pool_of_a_newer_driver_returns_its_options() {
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 1)),
        |test, _| {
            let device = test.device();
            let options = PoolOptions::new(&device)
                .with_max_bytes(64 << 20)
                .with_handle_types(shared_handle_types());
            let pool =
                MemoryPool::with_options(test.driver(), &options).expect("the device has pools");
            assert_eq!(
                pool.kind().expect("the driver reports it"),
                PoolKind::Pinned
            );
            assert_eq!(
                pool.location().expect("the driver reports it"),
                Some(MemoryLocation::from(&device))
            );
            assert_eq!(
                pool.handle_types().expect("the driver reports it"),
                shared_handle_types()
            );
            assert_eq!(
                pool.max_bytes().expect("the driver reports it"),
                Some(64 << 20)
            );
            assert!(
                !pool
                    .is_for_hardware_decompression()
                    .expect("the driver reports it")
            );
            let managed = MemoryPool::with_options(test.driver(), &PoolOptions::managed(None))
                .expect("there are such pools");
            assert_eq!(
                managed.kind().expect("the driver reports it"),
                PoolKind::Managed
            );
            assert_eq!(managed.location().expect("the driver reports it"), None);
        },
    );
    on_simulator(
        Config::new().with_driver_version(CudaVersion::new(13, 0)),
        |test, _| {
            assert_eq!(
                pool(test).kind().expect_err("the driver is too old").code(),
                INVALID
            );
        },
    );
}

#[test]
fn pool_refuses_to_grow_beyond_its_maximum() {
    on_driver(|test| {
        let options = PoolOptions::new(&test.device()).with_max_bytes(32 << 20);
        let pool = MemoryPool::with_options(test.driver(), &options).expect("the device has pools");
        round(&pool, &test.stream(), 1 << 20).expect("memory suffices");
        let error = round(&pool, &test.stream(), 256 << 20).expect_err("the pool is smaller");
        assert!(error.is_out_of_memory(), "{error}");
        assert!(error.to_string().contains("268435456 bytes"), "{error}");
    });
}

#[test]
fn current_pool_is_the_default_one_until_it_is_set_and_after_that_pool_ends() {
    on_driver(|test| {
        let device = test.device();
        let default = MemoryPool::default_for(&device).expect("the device has pools");
        let before = MemoryPool::current_for(&device).expect("the device has pools");
        let pool = pool(test);
        pool.set_current_for(&device)
            .expect("the pool belongs to this device");
        let current = MemoryPool::current_for(&device).expect("the device has pools");
        assert_eq!(current.as_raw(), pool.as_raw());
        let stream = test.stream();
        let buffer = DeviceBuffer::<u8>::zeroed(&stream, 1000).expect("memory suffices");
        assert!(pool.statistics().expect("a pool counts").used >= 1000);
        drop(buffer);
        stream.synchronize().expect("the stream works");
        before
            .set_current_for(&device)
            .expect("the pool belongs to this device");
        assert_eq!(
            MemoryPool::current_for(&device)
                .expect("the device has pools")
                .as_raw(),
            default.as_raw()
        );
        // Borrowed pools are not destroyed.
        test.assert_calls(Function::cuMemPoolDestroy, 0, || {
            default
                .close()
                .expect("closing the default pool does nothing");
            drop(before);
        });
    });
}

#[test]
fn memory_outlives_the_pool_that_it_came_from() {
    on_driver(|test| {
        let (pool, stream) = (pool(test), test.stream());
        let pointer = pool.allocate(&stream, 64, 64).expect("memory suffices");
        let clone = pool.clone();
        let (pool, error) = pool.close().expect_err("there is a clone").into_parts();
        assert!(error.to_string().contains("1 other owners"), "{error}");
        drop(clone);
        test.assert_calls(Function::cuMemPoolDestroy, 1, || {
            pool.close().expect("the pool can be destroyed");
        });
        // SAFETY: the memory is live and not in use.
        unsafe {
            call!(
                test.driver(),
                cuMemFreeAsync(pointer.as_raw(), stream.as_raw())
            )
        }
        .expect("the memory is live");
        stream.synchronize().expect("the stream works");
    });
}

#[test]
fn memory_belongs_to_no_context_and_outlives_that_of_its_stream() {
    on_driver(|test| {
        let pool = pool(test);
        let context = test
            .device()
            .create_context(ContextOptions::new())
            .expect("a context can be created");
        let stream = context
            .stream()
            .expect("a stream can be created in the context");
        let pointer = pool
            .allocate(&stream, 1 << 16, 256)
            .expect("memory suffices");
        // SAFETY: the memory has these bytes, for use on this stream.
        unsafe {
            call!(
                test.driver(),
                cuMemsetD8Async(pointer.as_raw(), 7, 1 << 16, stream.as_raw())
            )
        }
        .expect("the memory can be filled");
        assert_eq!(
            context_of(test, pointer),
            None,
            "the context is live, but not the owner"
        );
        stream.synchronize().expect("the work succeeds");
        drop((stream, context));

        let stream = test.stream();
        let mut bytes = vec![0_u8; 1 << 16];
        let place = bytes.as_mut_ptr().cast();
        // SAFETY: the memory is live and has these bytes, and so has the vector, which lives until the copy has ended.
        unsafe {
            call!(
                test.driver(),
                cuMemcpyDtoHAsync_v2(place, pointer.as_raw(), 1 << 16, stream.as_raw())
            )
        }
        .expect("the memory is live");
        stream.synchronize().expect("the copy succeeds");
        assert!(bytes.iter().all(|byte| *byte == 7));
        // SAFETY: the memory was allocated from this pool with this size and alignment, and its work has ended.
        unsafe { pool.deallocate(&stream, pointer, 1 << 16, 256) }
            .expect("another context's stream frees it");
        stream.synchronize().expect("the memory is freed");
        assert_eq!(pool.statistics().expect("a pool counts").used, 0);
    });
}

/// Returns the context that the driver names as the owner of memory.
fn context_of(test: &TestDriver, pointer: DevicePointer<u8>) -> Option<NonNull<CUctx_st>> {
    let mut context: CUcontext = ptr::null_mut();
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
    // SAFETY: the place has the attribute's type.
    unsafe {
        call!(
            test.driver(),
            cuPointerGetAttribute((&raw mut context).cast(), attribute, pointer.as_raw())
        )
    }
    .expect("the address is known");
    NonNull::new(context)
}

#[test]
fn access_is_that_of_the_device_of_the_pool() {
    on_driver(|test| {
        let (pool, device) = (pool(test), test.device());
        assert_eq!(
            pool.access(&device).expect("the device exists"),
            MemoryAccess::ReadWrite
        );
        pool.set_access(&device, MemoryAccess::ReadWrite)
            .expect("that is what it has");
        let error = pool
            .set_access(MemoryLocation::Device(99), MemoryAccess::ReadWrite)
            .expect_err("no such device");
        assert!(error.to_string().contains("device 99"), "{error}");
    });
    on_simulator(Config::new().with_devices(2), |test, _| {
        let pool = pool(test);
        let other = test.driver().device(1).expect("there are two devices");
        assert_eq!(
            pool.access(&other).expect("the device exists"),
            MemoryAccess::None
        );
        pool.set_access(&other, MemoryAccess::ReadWrite)
            .expect("the devices have a link");
        assert_eq!(
            pool.access(&other).expect("the device exists"),
            MemoryAccess::ReadWrite
        );
    });
}

#[cfg(target_os = "linux")]
#[test]
fn memory_of_a_shared_pool_is_opened_by_another_process() {
    on_simulator(Config::new(), |owner, _| {
        on_simulator(Config::new(), |other, _| {
            let options = PoolOptions::new(&owner.device())
                .with_handle_types(MemoryHandleTypes::POSIX_FILE_DESCRIPTOR);
            let pool =
                MemoryPool::with_options(owner.driver(), &options).expect("the device has pools");
            let descriptor = pool.export_fd().expect("the pool can be shared");
            let imported = MemoryPool::import_fd(other.driver(), descriptor.as_fd())
                .expect("the allocation is from a pool");
            let stream = owner.stream();
            let pointer = pool.allocate(&stream, 64, 64).expect("memory suffices");
            // SAFETY: the memory has these bytes, for use on this stream.
            unsafe {
                call!(
                    owner.driver(),
                    cuMemsetD8Async(pointer.as_raw(), 9, 64, stream.as_raw())
                )
            }
            .expect("the memory can be filled");
            stream.synchronize().expect("the stream works");
            let name = pool.export_pointer(pointer).expect("the pool is shared");
            let name = PoolPointerHandle::from_bytes(name.to_bytes());
            let memory = imported
                .import_pointer(name)
                .expect("the memory is from this pool");
            let (mut bytes, there) = ([0_u8; 64], other.stream());
            let to = bytes.as_mut_ptr().cast();
            // SAFETY: both sides have these bytes, and the stream is synchronized.
            unsafe {
                call!(
                    other.driver(),
                    cuMemcpyDtoHAsync_v2(to, memory.as_pointer().as_raw(), 64, there.as_raw())
                )
            }
            .expect("the memory can be read");
            there.synchronize().expect("the stream works");
            assert_eq!(bytes, [9; 64]);
            memory.close().expect("the memory can be closed");
            let error = imported
                .allocate(&there, 64, 64)
                .expect_err("the pool belongs to another process");
            assert_eq!(error.code(), INVALID);
            // SAFETY: the memory was allocated from this pool with this size and alignment, and is not in use.
            unsafe { pool.deallocate(&stream, pointer, 64, 64) }.expect("the memory can be freed");
        });
    });
}

#[cfg(target_os = "linux")]
#[test]
fn pool_that_was_not_made_to_be_shared_is_not_exported() {
    on_driver(|test| {
        let (pool, stream) = (pool(test), test.stream());
        let error = pool
            .export_fd()
            .expect_err("the pool belongs to this process");
        assert_eq!(
            error.function(),
            Some(Function::cuMemPoolExportToShareableHandle)
        );
        let pointer = pool.allocate(&stream, 64, 64).expect("memory suffices");
        let error = pool
            .export_pointer(pointer)
            .expect_err("the pool belongs to this process");
        assert!(
            error.to_string().contains(&format!("{pointer:?}")),
            "{error}"
        );
        // SAFETY: the memory was allocated from this pool with this size and alignment, and is not in use.
        unsafe { pool.deallocate(&stream, pointer, 64, 64) }.expect("the memory can be freed");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn memory_of_a_pool_has_a_name_once_the_pool_was_exported() {
    on_driver(|test| {
        let options = PoolOptions::new(&test.device())
            .with_handle_types(MemoryHandleTypes::POSIX_FILE_DESCRIPTOR);
        let pool = MemoryPool::with_options(test.driver(), &options).expect("the device has pools");
        let stream = test.stream();
        let pointer = pool.allocate(&stream, 64, 64).expect("memory suffices");
        stream.synchronize().expect("the stream works");
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
        let descriptor = pool.export_fd().expect("the pool can be shared");
        pool.export_pointer(pointer)
            .expect("now the memory has a name");
        // SAFETY: the memory was allocated from this pool with this size and alignment, and is not in use.
        unsafe { pool.deallocate(&stream, pointer, 64, 64) }.expect("the memory can be freed");
        drop(descriptor);
    });
}

#[test]
fn pool_of_the_host_gives_memory_that_the_host_reads() {
    on_simulator(Config::new(), |test, _| {
        let stream = test.stream();
        for options in [
            PoolOptions::new(MemoryLocation::Host),
            PoolOptions::new(MemoryLocation::HostNuma(0)),
            PoolOptions::managed(Some(MemoryLocation::from(&test.device()))),
        ] {
            let pool =
                MemoryPool::with_options(test.driver(), &options).expect("there are such pools");
            let pointer = pool.allocate(&stream, 16, 16).expect("memory suffices");
            // SAFETY: the memory has these bytes, for use on this stream.
            unsafe {
                call!(
                    test.driver(),
                    cuMemsetD8Async(pointer.as_raw(), 6, 16, stream.as_raw())
                )
            }
            .expect("the memory can be filled");
            stream.synchronize().expect("the stream works");
            let bytes: *const [u8; 16] = ptr::with_exposed_provenance(pointer.as_raw() as usize);
            // SAFETY: the memory has these bytes at the host's address too, and the device has finished with it.
            assert_eq!(unsafe { bytes.read() }, [6; 16]);
            // SAFETY: the memory was allocated from this pool with this size and alignment, and is not in use.
            unsafe { pool.deallocate(&stream, pointer, 16, 16) }.expect("the memory can be freed");
        }
    });
}

#[test]
fn current_pool_of_a_location_is_the_one_that_was_set() {
    on_simulator(Config::new(), |test, _| {
        let driver = test.driver();
        let (host, kind) = (Some(MemoryLocation::Host), PoolKind::Pinned);
        let default =
            MemoryPool::default_for_location(driver, host, kind).expect("the host has a pool");
        let current =
            MemoryPool::current_for_location(driver, host, kind).expect("the host has a pool");
        assert_eq!(current.as_raw(), default.as_raw());
        let pool = MemoryPool::with_options(driver, &PoolOptions::new(MemoryLocation::Host))
            .expect("there are such pools");
        pool.set_current_for_location(host, kind)
            .expect("the pool is in host memory");
        let current =
            MemoryPool::current_for_location(driver, host, kind).expect("the host has a pool");
        assert_eq!(current.as_raw(), pool.as_raw());
        let error = pool
            .set_current_for_location(None, PoolKind::Managed)
            .expect_err("the pool has another location");
        assert_eq!(error.code(), INVALID);
    });
}

#[test]
fn pool_is_ended_when_setting_it_up_fails() {
    on_simulator(Config::new(), |test, simulator| {
        simulator.inject(
            Fault::on(Function::cuMemPoolSetAttribute)
                .returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM),
        );
        let error = MemoryPool::new(&test.device()).expect_err("the injected fault occurs");
        assert_eq!(error.function(), Some(Function::cuMemPoolSetAttribute));
        assert!(
            error.to_string().contains("release threshold of a pool"),
            "{error}"
        );
        assert_eq!(simulator.live_handles().pools, 0);
    });
}

#[test]
fn sizes_and_alignments_that_cannot_be_are_errors() {
    on_driver(|test| {
        let (pool, stream) = (pool(test), test.stream());
        for (bytes, alignment) in [(0, 16), (16, 0), (16, 512), (usize::MAX, 16)] {
            let error = pool
                .allocate(&stream, bytes, alignment)
                .expect_err("the request is refused");
            assert!(matches!(error, Error::Argument(_)), "{error}");
        }
    });
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
    use crate::operations::{Fixture, Operation, allocate, allocate_and_free, boxed, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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

    pub(crate) const SHARED: &[Operation] = &[
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

    pub(crate) const NEWER: &[Operation] = &[
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

    pub(crate) const SOLITARY: &[Operation] = &[
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
            .and_then(|pool| block(&owner.stream, pool));
        let theirs = theirs.expect("the other process has memory");
        let descriptor = theirs.resource.export_fd().expect("the pool can be shared");
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
            .export_pointer(shared.theirs.pointer)
            .expect("the pool is shared");
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
