//! [`CachingResource`]: a caching suballocator.

mod block;
mod deferral;
mod graph;
mod shortage;
mod stitching;
mod traces;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use curium_driver::{Error, Function};
use curium_memory::{CachingOptions, CachingResource, Resource, SyncAlloc};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    Gate, TestDriver, TestResult, driver_test, on_simulator, resume_panic, simulator_test,
};

use self::block::Block;

/// The size of the parts in which memory is mapped, moved and returned.
const PART: u64 = 4 << 20;

fn caching(test: &TestDriver) -> TestResult<CachingResource> {
    Ok(CachingResource::with_options(
        &test.context(),
        &CachingOptions::new().with_cache(true),
    )?)
}

#[driver_test]
fn freed_block_is_reused_without_a_driver_call(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let first = Block::new(&resource, &stream, 1 << 20).address();
    let before = test
        .simulator()
        .map(|simulator| Function::all().map(|f| simulator.calls(f)).sum::<u64>());
    for _ in 0..100 {
        assert_eq!(
            Block::new(&resource, &stream, (1 << 20) - 100).address(),
            first
        );
    }
    let after = test
        .simulator()
        .map(|simulator| Function::all().map(|f| simulator.calls(f)).sum::<u64>());
    assert_eq!(before, after, "calls of the driver");
    let statistics = resource.statistics();
    assert_eq!(
        (statistics.allocations, statistics.frees, statistics.hits),
        (101, 101, 100)
    );
    assert_eq!((statistics.live_bytes(), statistics.growths), (0, 1));
    Ok(())
}

#[driver_test]
fn blocks_hold_written_values_in_every_size(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let sizes = [
        1,
        511,
        512,
        513,
        4096,
        100_000,
        1 << 20,
        (1 << 20) + 1,
        5 << 20,
        (33 << 20) + 7,
    ];
    let blocks: Vec<_> = sizes
        .iter()
        .map(|bytes| Block::new(&resource, &stream, *bytes))
        .collect();
    for (value, block) in blocks.iter().enumerate() {
        block.fill(value as u8);
    }
    for (value, block) in blocks.iter().enumerate() {
        assert!(
            block.holds(value as u8),
            "the block of {} bytes",
            block.bytes
        );
    }
    let mut ranges: Vec<_> = blocks
        .iter()
        .map(|block| (block.address(), block.bytes as u64))
        .collect();
    ranges.sort_unstable();
    assert!(
        ranges
            .windows(2)
            .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0),
        "{ranges:?} overlap"
    );
    assert_eq!(
        resource.statistics().live_bytes(),
        sizes.iter().sum::<usize>() as u64
    );
    Ok(())
}

/// A block that spans parts of a grown segment is one piece.
#[driver_test]
fn block_spans_mappings_when_a_segment_grows(test: &TestDriver) -> TestResult {
    let options = CachingOptions::new()
        .with_cache(true)
        .with_segment_bytes(2 << 20);
    let resource = CachingResource::with_options(&test.context(), &options)?;
    let stream = test.stream();
    drop(Block::new(&resource, &stream, 2 << 20));
    stream.synchronize()?;
    let block = Block::new(&resource, &stream, 8 << 20);
    block.fill(7);
    assert!(block.holds(7));
    let statistics = resource.statistics();
    assert_eq!(
        (statistics.growths, statistics.reserved_bytes),
        (2, 8 << 20),
        "the segment grew in place"
    );
    Ok(())
}

#[driver_test]
fn large_alignments_are_met(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let _first = Block::new(&resource, &stream, 1);
    let blocks: Vec<_> = (9..=21)
        .map(|log| Block::aligned(&resource, &stream, 3 << (log - 2), 1 << log))
        .collect();
    assert_eq!(blocks.len(), 13);
    let error = resource
        .allocate(&stream, 1, 4 << 20)
        .expect_err("no page is that large");
    assert!(matches!(error, Error::Argument(_)), "{error}");
    for (bytes, alignment) in [(0, 256), (usize::MAX, 256), (1, 0), (1, 3)] {
        resource
            .allocate(&stream, bytes, alignment)
            .expect_err("the request is refused");
    }
    Ok(())
}

/// Memory freed on a stream is for others only once its work is done.
#[driver_test]
fn freed_memory_crosses_streams_after_completion(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let other = test.stream();
    let bytes = 24 << 20;
    let gate = Gate::on(&stream);
    let block = Block::new(&resource, &stream, bytes);
    block.fill(1);
    let address = block.address();
    drop(block);
    assert_eq!(
        Block::new(&resource, &stream, bytes).address(),
        address,
        "the same stream reuses it immediately"
    );
    let while_pending = Block::new(&resource, &other, bytes);
    assert_ne!(
        while_pending.address(),
        address,
        "the work on the other stream has not completed"
    );
    gate.open();
    stream.synchronize()?;
    drop(while_pending);
    let _held = Block::new(&resource, &other, bytes);
    let after = Block::new(&resource, &other, bytes);
    assert_eq!(after.address(), address, "the work has completed");
    assert_eq!(resource.statistics().growths, 2);
    Ok(())
}

#[driver_test]
fn destroyed_streams_memory_is_reused(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let other = test.stream();
    let context = test.context();
    let bytes = 24 << 20;
    let stream = test.stream();
    let address = Block::new(&resource, &stream, bytes).address();
    drop(stream);
    context.synchronize()?;
    assert_eq!(Block::new(&resource, &other, bytes).address(), address);
    for _ in 0..20 {
        let stream = test.stream();
        Block::new(&resource, &stream, bytes).fill(1);
        drop(stream);
        context.synchronize()?;
    }
    assert_eq!(
        resource.statistics().growths,
        1,
        "memory of a destroyed stream is reused"
    );
    Ok(())
}

/// A destroyed stream is reported to every resource that watches it.
#[driver_test]
fn destroyed_stream_is_reported_to_watchers(test: &TestDriver) -> TestResult {
    let first = caching(test)?;
    let second = caching(test)?;
    let context = test.context();
    let stream = test.stream();
    let gate = Gate::on(&stream);
    for resource in [&first, &second] {
        drop(Block::new(resource, &stream, 24 << 20));
    }
    drop(stream);
    let other = test.stream();
    for resource in [&first, &second] {
        drop(Block::new(resource, &other, 24 << 20));
        assert_eq!(
            resource.statistics().growths,
            2,
            "the work of the destroyed stream has not completed"
        );
    }
    gate.open();
    context.synchronize()?;
    for resource in [&first, &second] {
        let _held = [
            Block::new(resource, &other, 24 << 20),
            Block::new(resource, &other, 24 << 20),
        ];
        assert_eq!(resource.statistics().growths, 2, "the work has completed");
    }
    Ok(())
}

#[driver_test]
fn threads_share_the_memory_and_leak_none_at_exit(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let resource = &resource;
            let stream = &stream;
            scope.spawn(move || {
                for round in 0..50 {
                    let blocks: Vec<_> = (0..40)
                        .map(|index| Block::new(resource, stream, 1 + 700 * (index + round)))
                        .collect();
                    assert!(
                        blocks.iter().all(|block| block.bytes > 0),
                        "thread {thread}"
                    );
                }
            });
        }
    });
    let statistics = resource.statistics();
    assert_eq!(
        (statistics.allocations, statistics.frees),
        (4 * 50 * 40, 4 * 50 * 40)
    );
    assert_eq!(
        (statistics.live_bytes(), statistics.free_bytes),
        (0, statistics.reserved_bytes)
    );
    stream.synchronize()?;
    resource.purge()?;
    let statistics = resource.statistics();
    assert_eq!(
        statistics.longest_free_bytes, statistics.reserved_bytes,
        "all free memory coalesces"
    );
    assert!(statistics.fragmentation() < f64::EPSILON);
    Ok(())
}

#[driver_test]
fn statistics_while_threads_end_count_no_block_twice(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..300 {
                let thread = scope.spawn(|| {
                    drop((
                        Block::new(&resource, &stream, 5000),
                        Block::new(&resource, &stream, 900),
                    ));
                });
                resume_panic(thread.join());
            }
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            // Constant polling would keep the other threads from the lock; a thread returns its
            // blocks when it ends.
            std::thread::sleep(Duration::from_micros(20));
            let statistics = resource.statistics();
            assert!(
                statistics.free_bytes <= statistics.reserved_bytes,
                "{statistics:?}"
            );
        }
    });
    Ok(())
}

/// A block freed by another thread is found by the first.
#[driver_test]
fn block_freed_by_another_thread_is_reused(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    for _ in 0..100 {
        let block = Block::new(&resource, &stream, 3 << 20);
        std::thread::scope(|scope| {
            scope
                .spawn(move || drop(block))
                .join()
                .expect("freeing does not panic");
        });
    }
    assert_eq!(resource.statistics().growths, 1);
    Ok(())
}

#[driver_test]
fn trim_releases_unused_memory(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let free = || -> TestResult<_> { Ok(test.context().memory_info()?.free) };
    let before = free()?;
    let live = Block::new(&resource, &stream, 1 << 20);
    drop(
        (0..4)
            .map(|_| Block::new(&resource, &stream, 40 << 20))
            .collect::<Vec<_>>(),
    );
    let reserved = resource.statistics().reserved_bytes;
    assert!(reserved >= 160 << 20, "{reserved} bytes are reserved");
    resource.synchronize(&stream)?;
    resource.trim(&stream, 0)?;
    assert_eq!(resource.statistics().reserved_bytes, PART);
    if test.simulator().is_some() {
        assert_eq!(free()?, before - PART as usize);
    }
    live.fill(3);
    assert!(live.holds(3));
    drop(live);
    resource.synchronize(&stream)?;
    resource.trim(&stream, 0)?;
    assert_eq!(resource.statistics().reserved_bytes, 0);
    drop(Block::new(&resource, &stream, 50 << 20));
    Ok(())
}

#[driver_test]
fn trim_leaves_memory_whose_work_is_pending(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let gate = Gate::on(&stream);
    Block::new(&resource, &stream, 1 << 20).fill(1);
    resource.trim(&stream, 0)?;
    assert_eq!(resource.statistics().reserved_bytes, PART);
    gate.open();
    stream.synchronize()?;
    resource.trim(&stream, 0)?;
    assert_eq!(resource.statistics().reserved_bytes, 0);
    Ok(())
}

#[driver_test]
fn foreign_stream_is_refused(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let context = test
        .device()
        .create_context(curium_driver::ContextOptions::new())?;
    let stream = context.stream()?;
    let error = resource
        .allocate(&stream, 16, 16)
        .expect_err("the memory belongs to another context");
    assert!(matches!(error, Error::Argument(_)), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("CachingResource::allocate: context mismatch (Stream("),
        "{error}"
    );
    Ok(())
}

/// Without a cache every allocation goes to the driver.
#[driver_test]
fn uncached_allocations_reach_the_driver(test: &TestDriver) -> TestResult {
    let options = CachingOptions::new().with_cache(false);
    let resource = CachingResource::with_options(&test.context(), &options)?;
    let stream = test.stream();
    for function in [Function::cuMemAllocAsync, Function::cuMemFreeAsync] {
        test.assert_calls(function, 3, || {
            (0..3).for_each(|_| drop(Block::new(&resource, &stream, 100)));
        });
    }
    assert_eq!(resource.statistics().allocations, 6);
    Ok(())
}

#[driver_test]
fn segments_may_come_from_another_resource(test: &TestDriver) -> TestResult {
    let options = CachingOptions::new().with_cache(true);
    let resource = CachingResource::with_upstream(&test.context(), &options, SyncAlloc)?;
    let stream = test.stream();
    test.assert_calls(Function::cuMemAlloc_v2, 2, || {
        let small = Block::new(&resource, &stream, 1 << 20);
        let large = Block::new(&resource, &stream, 64 << 20);
        small.fill(1);
        large.fill(2);
        assert!(small.holds(1) && large.holds(2));
    });
    resource.synchronize(&stream)?;
    test.assert_calls(Function::cuMemFree_v2, 2, || -> TestResult<_> {
        resource.trim(&stream, 0)?;
        Ok(())
    })?;
    drop(Block::new(&resource, &stream, 1));
    test.assert_calls(Function::cuMemFree_v2, 1, || drop(resource));
    Ok(())
}

/// A driver without virtual memory lends segments of its pool.
#[simulator_test(Config::new().without(Function::cuMemMap))]
fn pool_segments_replace_missing_virtual_memory(test: &TestDriver, _: &Simulator) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    test.assert_calls(Function::cuMemAllocAsync, 1, || {
        let blocks: Vec<_> = (1..50)
            .map(|index| Block::new(&resource, &stream, 1000 * index))
            .collect();
        blocks[0].fill(1);
        assert!(blocks[0].holds(1));
    });
    Ok(())
}

/// A private pool queries no stream and keeps its memory.
#[driver_test]
fn private_pool_queries_no_stream(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let other = test.stream();
    let pool = resource.private_pool()?;
    let address = Block::new(&pool, &stream, 24 << 20).address();
    for function in [
        Function::cuEventRecord,
        Function::cuEventQuery,
        Function::cuStreamQuery,
    ] {
        test.assert_calls(function, 0, || {
            assert_ne!(Block::new(&pool, &other, 24 << 20).address(), address);
        });
    }
    assert_eq!(Block::new(&pool, &stream, 24 << 20).address(), address);
    assert_eq!(resource.statistics().allocations, 0);
    // A graph may run again and use the memory it freed: waiting and trimming have no effect.
    pool.synchronize(&stream)?;
    pool.trim(&stream, 0)?;
    let third = test.stream();
    let elsewhere = Block::new(&pool, &third, 24 << 20).address();
    assert_eq!(Block::new(&pool, &stream, 24 << 20).address(), address);
    assert_ne!(elsewhere, address);
    Ok(())
}

#[test]
fn growth_that_fails_leaks_nothing() -> TestResult {
    for function in [
        Function::cuMemCreate,
        Function::cuMemMap,
        Function::cuMemSetAccess,
    ] {
        on_simulator(Config::new(), |test, simulator| -> TestResult {
            let resource = caching(test)?;
            let stream = test.stream();
            let live = simulator.live_handles();
            simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY));
            let error = resource
                .allocate(&stream, 1, 1)
                .expect_err("the injected fault occurs");
            assert_eq!(error.function(), Some(function), "{error}");
            assert_eq!(simulator.live_handles(), live);
            drop(Block::new(&resource, &stream, 1));
            Ok(())
        })?;
    }
    Ok(())
}

/// Parts of free memory that the driver does not map elsewhere are neither lost nor used twice.
#[test]
fn memory_that_cannot_move_is_not_lost() -> TestResult {
    const PART: usize = 4 << 20;
    for function in [
        Function::cuMemAddressReserve,
        Function::cuMemMap,
        Function::cuMemSetAccess,
        Function::cuMemUnmap,
    ] {
        on_simulator(Config::new(), |test, simulator| -> TestResult {
            let stream = test.stream();
            let live = simulator.live_handles();
            let options = CachingOptions::new().with_cache(true).with_segment_bytes(1);
            let resource = CachingResource::with_options(&test.context(), &options)?;
            let blocks = (0..16).map(|_| Block::new(&resource, &stream, PART));
            let (freed, kept): (Vec<_>, Vec<_>) =
                blocks.enumerate().partition(|(index, _)| index % 4 < 2);
            drop(freed);
            stream.synchronize()?;
            let fault = Fault::on(function).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY);
            if function != Function::cuMemUnmap {
                simulator.inject(fault);
            }
            let large = Block::new(&resource, &stream, 8 * PART);
            large.fill(1);
            for (_, block) in &kept {
                block.fill(2);
            }
            stream.synchronize()?;
            let statistics = resource.statistics();
            assert_eq!(statistics.live_bytes(), 16 * PART as u64, "{function:?}");
            assert_eq!(
                statistics.reserved_bytes,
                statistics.live_bytes() + statistics.free_bytes,
                "{function:?}"
            );
            drop((large, kept));
            if function == Function::cuMemUnmap {
                simulator.inject(fault);
                assert!(resource.trim(&stream, 0).is_err());
            }
            resource.trim(&stream, 0)?;
            assert_eq!(resource.statistics().reserved_bytes, 0, "{function:?}");
            drop(resource);
            assert_eq!(simulator.live_handles(), live, "{function:?}");
            Ok(())
        })?;
    }
    Ok(())
}

#[simulator_test]
fn trim_that_fails_keeps_what_is_still_mapped(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    drop(Block::new(&resource, &stream, 1));
    simulator
        .inject(Fault::on(Function::cuMemUnmap).returns(CUresult::CUDA_ERROR_SYSTEM_NOT_READY));
    let error = resource
        .trim(&stream, 0)
        .expect_err("the injected fault occurs");
    assert_eq!(error.function(), Some(Function::cuMemUnmap));
    assert_eq!(resource.statistics().free_bytes, 32 << 20);
    Block::new(&resource, &stream, 1 << 20).fill(1);
    stream.synchronize()?;
    resource.trim(&stream, 0)?;
    assert_eq!(resource.statistics().reserved_bytes, 0);
    Ok(())
}

#[driver_test]
fn clones_share_the_memory(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let clone = resource.clone();
    let address = Block::new(&resource, &stream, 4096).address();
    drop(resource);
    let shared: Arc<dyn Resource> = Arc::new(clone);
    assert_eq!(Block::new(&shared, &stream, 4096).address(), address);
    Ok(())
}

/// Segments as large as the address space are as large as possible.
#[simulator_test(Config::new().with_memory_budget(256 << 20))]
fn huge_segment_size_is_clamped(test: &TestDriver, _: &Simulator) -> TestResult {
    let options = CachingOptions::new()
        .with_cache(true)
        .with_segment_bytes(usize::MAX);
    let context = test.context();
    let stream = test.stream();
    let mapped = CachingResource::with_options(&context, &options)?;
    let lent = CachingResource::with_upstream(&context, &options, SyncAlloc)?;
    for resource in [mapped, lent] {
        let block = Block::new(&resource, &stream, 1 << 20);
        assert!(resource.statistics().reserved_bytes >= block.bytes as u64);
    }
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::Result;
    use curium_memory::{CachingOptions, CachingResource, Resource, SyncAlloc};

    use crate::operations::{Fixture, Operation, Operations, allocate, allocate_and_free, made};

    const OPERATIONS: &[Operation] = &[
        ("CachingResource::new", |fixture| {
            made(CachingResource::new(&fixture.context)?)
        }),
        ("CachingResource::with_upstream", |fixture| {
            made(CachingResource::with_upstream(
                &fixture.context,
                &CachingOptions::new(),
                SyncAlloc,
            )?)
        }),
        ("CachingResource::private_pool", |fixture| {
            let resource = caching(fixture)?;
            made((resource.private_pool()?, resource))
        }),
        ("CachingResource::allocate", |fixture| {
            allocate(fixture, caching(fixture)?)
        }),
        ("CachingResource::synchronize", |fixture| {
            let resource = caching(fixture)?;
            resource.synchronize(&fixture.stream)?;
            made(resource)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("CachingResource::with_options", |fixture| {
            made(CachingResource::with_options(
                &fixture.context,
                &CachingOptions::default(),
            )?)
        }),
        ("CachingResource::deallocate", |fixture| {
            allocate_and_free(fixture, CachingResource::new(&fixture.context)?)
        }),
        (
            "CachingResource::purge and CachingResource::trim",
            |fixture| {
                let resource = CachingResource::new(&fixture.context)?;
                let pointer = resource.allocate(&fixture.stream, 64, 8)?;
                // SAFETY: the memory was just allocated here and is not in use.
                unsafe { resource.deallocate(&fixture.stream, pointer, 64, 8) }?;
                resource.purge()?;
                resource.trim(&fixture.stream, 0)?;
                made(resource)
            },
        ),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }

    fn caching(fixture: &Fixture) -> Result<CachingResource> {
        // Segments of exactly the required size: the cache retries with that size after a larger
        // one fails.
        let options = CachingOptions::new().with_cache(true).with_segment_bytes(1);
        CachingResource::with_options(&fixture.context, &options)
    }
}
