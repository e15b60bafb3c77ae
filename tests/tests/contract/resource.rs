//! [`Resource`]: properties of every resource, and the upstream resources.

use std::sync::Arc;

use curium_diagnostics::AllocationRecorder;
use curium_driver::AsRawStream as _;
use curium_driver::{DevicePointer, Error, Function, Result, Stream, call};
use curium_memory::c_resource::ResourceTable;
use curium_memory::{
    Arena, CachingOptions, CachingResource, FailureCallback, LeakTracker, LimitedResource, Managed,
    MemoryPool, Pinned, Reclaiming, Resource, Statistics, StreamOrdered, SyncAlloc,
};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, resume_panic, simulator_test};

/// Allocates and deallocates.
fn round(resource: &impl Resource, stream: &Stream, bytes: usize, alignment: usize) -> Result<()> {
    let pointer = resource.allocate(stream, bytes, alignment)?;
    assert!(
        pointer.as_raw() != 0 && pointer.as_raw() % alignment as u64 == 0,
        "{pointer:?}"
    );
    write_and_read(stream, pointer, bytes);
    free(resource, stream, pointer, bytes, alignment)
}

fn free(
    resource: &impl Resource,
    stream: &Stream,
    pointer: DevicePointer<u8>,
    bytes: usize,
    alignment: usize,
) -> Result<()> {
    // SAFETY: the memory was allocated from this resource with this size and alignment, and is not
    // in use.
    unsafe { resource.deallocate(stream, pointer, bytes, alignment) }
}

/// Writes every byte on the device, and returns the last.
fn write_and_read(stream: &Stream, pointer: DevicePointer<u8>, bytes: usize) {
    let driver = stream.driver();
    let address = pointer.as_raw();
    let raw = stream.as_raw();
    // SAFETY: the memory is live with this size, and is used on its stream.
    unsafe { call!(driver, cuMemsetD8Async(address, 0xA5, bytes, raw)) }.expect("write failed");
    let mut last = 0_u8;
    let output = (&raw mut last).cast();
    // SAFETY: the memory has a last byte, `last` is valid for writes, and the stream is
    // synchronized.
    unsafe {
        call!(
            driver,
            cuMemcpyDtoHAsync_v2(output, address + bytes as u64 - 1, 1, raw)
        )
    }
    .expect("read failed");
    stream.synchronize().expect("the stream works");
    assert_eq!(last, 0xA5);
}

fn caching(test: &TestDriver) -> CachingResource {
    let options = CachingOptions::new().with_cache(true);
    CachingResource::with_options(&test.context(), &options).expect("failed to create a resource")
}

/// Returns every resource, by itself and composed.
fn all(test: &TestDriver) -> TestResult<Vec<(&'static str, Arc<dyn Resource>)>> {
    let context = test.context();
    let table = || {
        let table = ResourceTable::export(caching(test), &context);
        // SAFETY: the table is owned here, has no other owner, and its functions are those of a
        // resource.
        unsafe { curium_memory::c_resource::ExternalResource::from_table(table) }
            .expect("the table is complete")
    };
    Ok(vec![
        ("StreamOrdered", Arc::new(StreamOrdered)),
        ("MemoryPool", Arc::new(MemoryPool::new(&test.device())?)),
        ("SyncAlloc", Arc::new(SyncAlloc)),
        ("Managed", Arc::new(Managed)),
        ("Pinned", Arc::new(Pinned)),
        ("Arena", Arc::new(Arena::new(&context)?)),
        ("CachingResource", Arc::new(caching(test))),
        ("ExternalResource", Arc::new(table())),
        (
            "LimitedResource",
            Arc::new(LimitedResource::new(StreamOrdered, 1 << 30)),
        ),
        ("Statistics", Arc::new(Statistics::new(StreamOrdered))),
        ("LeakTracker", Arc::new(LeakTracker::new(StreamOrdered))),
        (
            "AllocationRecorder",
            Arc::new(AllocationRecorder::ring(StreamOrdered, 3)),
        ),
        (
            "FailureCallback",
            Arc::new(FailureCallback::new(
                StreamOrdered,
                |_: &Error, _: &Stream, _| false,
            )),
        ),
        ("Reclaiming", Arc::new(Reclaiming::new(caching(test)))),
        (
            "a tower",
            Arc::new(Statistics::new(LeakTracker::new(LimitedResource::new(
                Reclaiming::new(caching(test)),
                1 << 30,
            )))),
        ),
    ])
}

#[driver_test]
fn resource_gives_aligned_memory_and_takes_it_back(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    for (name, resource) in all(test)? {
        for (bytes, alignment) in [(1, 1), (1, 256), (255, 16), (1 << 20, 256)] {
            round(&resource, &stream, bytes, alignment)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        resource
            .purge()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        resource
            .synchronize(&stream)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        resource
            .trim(&stream, 0)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        round(&resource, &stream, 4096, 256).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    Ok(())
}

#[driver_test]
fn resources_are_used_by_many_threads_at_once(test: &TestDriver) -> TestResult {
    for (name, resource) in all(test)? {
        std::thread::scope(|scope| {
            for thread in 1..4 {
                let resource = &resource;
                let stream = test.stream();
                scope.spawn(move || {
                    for bytes in 1..20 {
                        round(resource, &stream, bytes * thread * 100, 256)
                            .unwrap_or_else(|error| panic!("{name}: {error}"));
                    }
                });
            }
        });
    }
    Ok(())
}

/// A stream ordered makes one call per allocation and deallocation.
#[driver_test]
fn stream_ordered_makes_one_call_each(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    test.assert_calls(Function::cuMemAllocAsync, 1, || -> TestResult<_> {
        test.assert_calls(Function::cuMemFreeAsync, 1, || -> TestResult<_> {
            round(&StreamOrdered, &stream, 64, 64)?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// Invalid sizes and alignments are errors with the values.
#[driver_test]
fn invalid_sizes_and_alignments_are_reported(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let arena = Arena::new(&test.context())?;
    let sources: [(&dyn Resource, usize); 5] = [
        (&StreamOrdered, 256),
        (&SyncAlloc, 256),
        (&Managed, 256),
        (&Pinned, 256),
        (&arena, 2 << 20),
    ];
    for (resource, largest) in sources {
        let beyond = largest * 2;
        let cases = [
            (0, 16, "zero size".to_owned()),
            (
                usize::MAX,
                16,
                "size overflow (18446744073709551615 bytes)".to_owned(),
            ),
            (
                16,
                0,
                "invalid alignment (0 bytes is not a power of two)".to_owned(),
            ),
            (
                16,
                24,
                "invalid alignment (24 bytes is not a power of two)".to_owned(),
            ),
            (
                16,
                beyond,
                format!("unsupported alignment ({beyond} bytes, at most {largest})"),
            ),
        ];
        for (bytes, alignment, expected) in cases {
            let error = resource
                .allocate(&stream, bytes, alignment)
                .expect_err("the request is refused");
            assert!(matches!(error, Error::Argument(_)), "{error}");
            assert!(error.to_string().ends_with(&expected), "{error}");
        }
    }
    Ok(())
}

#[simulator_test(Config::new().with_memory_budget(64 << 20))]
fn out_of_memory_is_an_error_with_the_sizes(test: &TestDriver, _: &Simulator) -> TestResult {
    let stream = test.stream();
    let arena = Arena::new(&test.context())?;
    for resource in [&StreamOrdered as &dyn Resource, &SyncAlloc, &arena] {
        let error = resource
            .allocate(&stream, 65 << 20, 256)
            .expect_err("the budget is too small");
        assert!(error.is_out_of_memory() && !error.is_sticky(), "{error}");
        let Error::OutOfMemory(figures) = &error else {
            panic!("{error:?} has no figures")
        };
        let free = test.context().memory_info()?.free;
        assert_eq!(
            (figures.requested, figures.total, figures.free),
            (65 << 20, Some(64 << 20), Some(free))
        );
        assert_eq!(
            (figures.pool_used, figures.pool_reserved),
            (Some(0), Some(0))
        );
        assert!(
            error
                .to_string()
                .contains(&format!(", {free} of 67108864 bytes of the device free")),
            "{error}"
        );
        assert!(
            error.code().is_some() && error.function().is_some(),
            "{error:?}"
        );
    }
    Ok(())
}

/// Blocking resources wait for the stream before they free.
#[driver_test]
fn blocking_resources_wait_before_they_free(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let arena = Arena::new(&test.context())?;
    for resource in [&SyncAlloc as &dyn Resource, &Managed, &Pinned, &arena] {
        let pointer = resource.allocate(&stream, 4096, 256)?;
        let gate = Gate::on(&stream);
        let address = pointer.as_raw();
        let raw = stream.as_raw();
        // SAFETY: the memory is live and used on its stream.
        unsafe { call!(stream.driver(), cuMemsetD8Async(address, 1, 4096, raw)) }?;
        std::thread::scope(|scope| {
            let freeing = scope.spawn(|| free(&resource, &stream, pointer, 4096, 256));
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert!(
                !freeing.is_finished(),
                "the memory was freed while the device used it"
            );
            gate.open();
            resume_panic(freeing.join()).expect("deallocation failed");
        });
    }
    Ok(())
}

#[simulator_test]
fn free_that_fails_leaves_the_memory_to_the_caller(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let stream = test.stream();
    let cases: [(&dyn Resource, Function); 4] = [
        (&StreamOrdered, Function::cuMemFreeAsync),
        (&SyncAlloc, Function::cuMemFree_v2),
        (&Managed, Function::cuMemFree_v2),
        (&Pinned, Function::cuMemFreeHost),
    ];
    for (resource, function) in cases {
        let pointer = resource.allocate(&stream, 100, 256)?;
        simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY));
        let error =
            free(&resource, &stream, pointer, 100, 256).expect_err("the injected fault occurs");
        assert_eq!(error.function(), Some(function));
        free(&resource, &stream, pointer, 100, 256)?;
    }
    Ok(())
}

/// Pinned memory without an address on the device is freed.
#[simulator_test]
fn pinned_memory_without_device_address_is_freed(test: &TestDriver, simulator: &Simulator) {
    let stream = test.stream();
    let function = Function::cuMemHostGetDevicePointer_v2;
    simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY));
    let error = Pinned
        .allocate(&stream, 100, 256)
        .expect_err("the injected fault occurs");
    assert_eq!(error.function(), Some(function));
    assert_eq!(simulator.live_handles().host_allocations, 0);
}

#[driver_test]
fn arena_grows_contiguously_and_coalesces_free_blocks(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let arena = Arena::new(&context)?;
    let blocks: Vec<_> = (0..5)
        .map(|_| {
            arena
                .allocate(&stream, 2 << 20, 256)
                .expect("allocation failed")
        })
        .collect();
    let expected: Vec<_> = (0..5)
        .map(|index| blocks[0].wrapping_add(index << 21))
        .collect();
    assert_eq!(blocks, expected, "one after the other");
    for block in blocks {
        free(&arena, &stream, block, 2 << 20, 256)?;
    }
    assert_eq!(arena.reserved_bytes(), 10 << 20);
    let all = arena.allocate(&stream, 10 << 20, 2 << 20)?;
    assert_eq!((all, arena.reserved_bytes()), (expected[0], 10 << 20));
    write_and_read(&stream, all, 10 << 20);
    let more = arena.allocate(&stream, 1, 1)?;
    free(&arena, &stream, all, 10 << 20, 2 << 20)?;
    arena.trim(&stream, 0)?;
    assert_eq!(arena.reserved_bytes(), 2 << 20);
    free(&arena, &stream, more, 1, 1)?;
    Ok(())
}

pub(crate) mod operations {
    use curium_memory::{Arena, Managed, Pinned, Resource, StreamOrdered, SyncAlloc};

    use crate::operations::{Operation, Operations, allocate, allocate_and_free, made};

    const OPERATIONS: &[Operation] = &[
        (
            "StreamOrdered::allocate and StreamOrdered::deallocate",
            |fixture| allocate_and_free(fixture, StreamOrdered),
        ),
        ("StreamOrdered::trim", |fixture| {
            made(StreamOrdered.trim(&fixture.stream, 0)?)
        }),
        ("SyncAlloc::allocate and SyncAlloc::deallocate", |fixture| {
            allocate_and_free(fixture, SyncAlloc)
        }),
        ("Managed::allocate and Managed::deallocate", |fixture| {
            allocate_and_free(fixture, Managed)
        }),
        ("Pinned::allocate and Pinned::deallocate", |fixture| {
            allocate_and_free(fixture, Pinned)
        }),
        ("Arena::new", |fixture| made(Arena::new(&fixture.context)?)),
        ("Arena::allocate", |fixture| {
            allocate(fixture, Arena::new(&fixture.context)?)
        }),
        ("Arena::deallocate", |fixture| {
            let arena = Arena::new(&fixture.context)?;
            allocate_and_free(fixture, &arena)?;
            made(arena)
        }),
        ("Arena::trim", |fixture| {
            let arena = Arena::new(&fixture.context)?;
            allocate_and_free(fixture, &arena)?;
            arena.trim(&fixture.stream, 0)?;
            made(arena)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
