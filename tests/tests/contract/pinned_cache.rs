//! [`PinnedCache`]: a cache of pinned memory.

use std::thread;

use curium_driver::{Context, DeviceAttribute, Error, Function};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedCache, PinnedCacheOptions, copy};
use curium_sim::{Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{Gate, TestDriver, TestResult, driver_test, simulator_test, stream_work};

const LEN: usize = 1000;

/// The size of the segments of these tests in bytes.
const SEGMENT: usize = 64 << 10;

fn options() -> PinnedCacheOptions {
    PinnedCacheOptions::new()
        .with_segment_bytes(SEGMENT)
        .with_max_bytes(1 << 20)
        .with_cache(true)
}

fn cache(context: &Context) -> TestResult<PinnedCache> {
    Ok(PinnedCache::with_options(context, &options())?)
}

#[driver_test]
fn dropped_buffer_is_reused_without_a_call(test: &TestDriver) -> TestResult {
    let cache = cache(&test.context())?;
    let first = PinnedBuffer::<u32>::zeroed_in(LEN, &cache)?;
    let address = first.as_ptr();
    drop(first);
    let hits = cache.statistics().hits;
    let again = test.assert_calls(Function::cuMemHostAlloc, 0, || {
        PinnedBuffer::<u32>::uninit_in(LEN, &cache)
    })?;
    assert_eq!(again.as_ptr(), address);
    assert_eq!(again.len(), LEN);
    assert_eq!(cache.statistics().hits, hits + 1);
    assert_eq!(cache.statistics().live_allocations(), 1);
    Ok(())
}

#[driver_test]
fn constructors_set_every_element(test: &TestDriver) -> TestResult {
    let cache = cache(&test.context())?;
    drop(PinnedBuffer::filled_in(LEN, 0xFF_u8, &cache)?);
    assert_eq!(PinnedBuffer::<u8>::zeroed_in(LEN, &cache)?[..], [0; LEN]);
    let filled = PinnedBuffer::filled_in(LEN, 7_u16, &cache)?;
    let copied = PinnedBuffer::from_slice_in(&filled, &cache)?;
    assert_eq!((&filled[..], &copied[..]), (&[7; LEN][..], &[7; LEN][..]));
    assert_eq!(copied.byte_len(), 2 * LEN);
    Ok(())
}

#[driver_test]
fn zero_and_huge_lengths_are_errors(test: &TestDriver) -> TestResult {
    let cache = cache(&test.context())?;
    for len in [0, usize::MAX, isize::MAX as usize / 8 + 1] {
        let error = PinnedBuffer::<u64>::zeroed_in(len, &cache);
        let error = error.map(drop).expect_err("no such length");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert!(error.to_string().contains("zeroed_in"), "{error}");
    }
    Ok(())
}

/// Buffers of elements with any alignment are aligned.
#[driver_test]
fn cached_elements_are_aligned(test: &TestDriver) -> TestResult {
    #[derive(Clone, Copy)]
    #[repr(C, align(4096))]
    struct Page([u8; 4096]);
    // SAFETY: an array of bytes whose size equals its alignment has no padding.
    unsafe impl bytemuck::Zeroable for Page {}
    // SAFETY: as above, and every bit pattern is valid.
    unsafe impl bytemuck::Pod for Page {}

    let cache = cache(&test.context())?;
    let _byte = PinnedBuffer::filled_in(1, 1_u8, &cache)?;
    let page = PinnedBuffer::filled_in(2, Page([3; 4096]), &cache)?;
    assert_eq!(page.as_ptr().addr() % 4096, 0);
    assert_eq!(page[1].0, [3; 4096]);
    Ok(())
}

/// A buffer that is dropped while a stream reads it is not allocated again before the copy has
/// completed.
#[driver_test]
fn dropped_upload_does_not_wait(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let cache = cache(stream.context())?;
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    let source = PinnedBuffer::filled_in(LEN, 5_u32, &cache)?;
    let address = source.as_ptr();
    let gate = Gate::on(&stream);
    drop(copy::upload(&stream, source, &mut target).map_err(|returned| returned.error)?);
    assert!(stream_work::is_held_up(&stream), "the drop has not waited");
    for _ in 0..100 {
        let other = PinnedBuffer::filled_in(LEN, 6_u32, &cache)?;
        assert_ne!(other.as_ptr(), address);
    }
    gate.open();
    assert_eq!(target.to_vec()?, [5; LEN]);
    Ok(())
}

/// As for uploads: the copy would overwrite the elements of the next buffer.
#[driver_test]
fn dropped_download_does_not_wait(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let cache = cache(stream.context())?;
    let source = DeviceBuffer::from_slice(&stream, &[5_u32; LEN])?;
    let target = PinnedBuffer::filled_in(LEN, 0_u32, &cache)?;
    let gate = Gate::on(&stream);
    drop(copy::download(&stream, &source, target).map_err(|returned| returned.error)?);
    let others: Result<Vec<_>, _> = (0..40)
        .map(|_| PinnedBuffer::filled_in(LEN, 6_u32, &cache))
        .collect();
    gate.open();
    stream.synchronize()?;
    assert!(others?.iter().all(|other| other[..] == [6; LEN]));
    Ok(())
}

/// Memory of completed copies is reused: a loop that drops its uploads needs a constant amount.
#[driver_test]
fn memory_of_completed_copies_is_reused(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let cache = cache(stream.context())?;
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    for value in 0..1000 {
        let source = PinnedBuffer::filled_in(LEN, value, &cache)?;
        drop(copy::upload(&stream, source, &mut target).map_err(|returned| returned.error)?);
        if value % 10 == 9 {
            assert_eq!(target.to_vec()?, [value; LEN]);
        }
    }
    let reserved = cache.statistics().reserved_bytes;
    assert!(reserved <= 6 * SEGMENT as u64, "{reserved} bytes");
    Ok(())
}

/// A buffer that a copy has returned is reused at once.
#[driver_test]
fn returned_buffer_is_reused_at_once(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let cache = cache(stream.context())?;
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    let source = PinnedBuffer::filled_in(LEN, 5_u32, &cache)?;
    let address = source.as_ptr();
    let pending = copy::upload(&stream, source, &mut target).map_err(|returned| returned.error)?;
    drop(pending.wait().map_err(|returned| returned.error)?);
    let again = PinnedBuffer::<u32>::uninit_in(LEN, &cache)?;
    assert_eq!((again.as_ptr(), &again[..]), (address, &[5; LEN][..]));
    Ok(())
}

/// A copy that is refused returns the buffer, which is not in use then.
#[driver_test]
fn refused_copy_returns_the_buffer(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let cache = cache(stream.context())?;
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN - 1)?;
    let source = PinnedBuffer::filled_in(LEN, 5_u32, &cache)?;
    let address = source.as_ptr();
    let (source, error) = copy::upload(&stream, source, &mut target)
        .map(drop)
        .expect_err("the lengths differ")
        .into_parts();
    assert!(error.to_string().contains("length mismatch"), "{error}");
    drop(source);
    assert_eq!(
        PinnedBuffer::<u32>::uninit_in(LEN, &cache)?.as_ptr(),
        address
    );
    Ok(())
}

/// Buffers beyond the limit are the driver's.
#[driver_test]
fn buffers_beyond_the_limit_are_not_cached(test: &TestDriver) -> TestResult {
    let cache = cache(&test.context())?;
    let mut buffers = Vec::new();
    for value in 0..40_u8 {
        buffers.push(PinnedBuffer::filled_in(64 << 10, value, &cache)?);
    }
    let large = PinnedBuffer::filled_in(4 << 20, 1_u8, &cache)?;
    assert!(cache.statistics().reserved_bytes <= 1 << 20);
    for (value, buffer) in buffers.iter().enumerate() {
        assert!(buffer.iter().all(|byte| usize::from(*byte) == value));
    }
    test.assert_calls(Function::cuMemFreeHost, 1, || drop(large));
    drop(buffers);
    cache.trim(0)?;
    assert_eq!(cache.statistics().reserved_bytes, 0);
    Ok(())
}

/// Unused segments are returned if the driver has no memory left.
#[simulator_test]
fn memory_pressure_returns_segments(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let cache = cache(&test.context())?;
    drop(PinnedBuffer::filled_in(LEN, 1_u32, &cache)?);
    assert_eq!(cache.statistics().reserved_bytes, SEGMENT as u64);
    simulator.inject(
        Fault::on(Function::cuMemHostAlloc)
            .call(1)
            .returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
    );
    let large = test.assert_calls(Function::cuMemFreeHost, 1, || {
        PinnedBuffer::filled_in(4 << 20, 2_u8, &cache)
    })?;
    simulator.clear_faults();
    assert_eq!(large.len(), 4 << 20);
    assert_eq!(cache.statistics().reserved_bytes, 0);
    simulator.inject(
        Fault::on(Function::cuMemHostAlloc)
            .always()
            .returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
    );
    let error = PinnedBuffer::<u8>::zeroed_in(64, &cache).map(drop);
    let error = error.expect_err("there is no memory");
    assert!(error.is_out_of_memory(), "{error}");
    simulator.clear_faults();
    Ok(())
}

/// Trimming keeps the memory of copies in progress.
#[driver_test]
fn trim_keeps_memory_of_copies(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let cache = cache(stream.context())?;
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    let source = PinnedBuffer::filled_in(LEN, 5_u32, &cache)?;
    let gate = Gate::on(&stream);
    drop(copy::upload(&stream, source, &mut target).map_err(|returned| returned.error)?);
    cache.trim(0)?;
    assert_eq!(cache.statistics().reserved_bytes, SEGMENT as u64);
    gate.open();
    assert_eq!(target.to_vec()?, [5; LEN]);
    stream.synchronize()?;
    cache.trim(0)?;
    cache.trim(0)?;
    assert_eq!(cache.statistics().reserved_bytes, 0);
    Ok(())
}

/// A buffer keeps the memory of its cache alive, and a cache that is dropped waits for copies.
#[driver_test]
fn buffers_outlive_the_cache(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let cache = cache(stream.context())?;
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    let source = PinnedBuffer::filled_in(LEN, 5_u32, &cache)?;
    drop(cache);
    assert_eq!(source[..], [5; LEN]);
    drop(copy::upload(&stream, source, &mut target).map_err(|returned| returned.error)?);
    assert_eq!(target.to_vec()?, [5; LEN]);
    Ok(())
}

/// Threads allocate from one cache, and free each other's buffers.
#[driver_test]
fn threads_share_a_cache(test: &TestDriver) -> TestResult {
    let context = test.context();
    let cache = cache(&context)?;
    thread::scope(|scope| {
        for thread in 0..4 {
            let (cache, context) = (&cache, &context);
            scope.spawn(move || {
                let stream = context.stream().expect("failed to create a stream");
                let mut target =
                    DeviceBuffer::<u32>::zeroed(&stream, LEN).expect("allocation failed");
                for round in 0..50 {
                    let value = thread * 100 + round;
                    let source = PinnedBuffer::filled_in(LEN, value, cache).expect("memory");
                    drop(copy::upload(&stream, source, &mut target).map_err(|r| r.error));
                    assert_eq!(target.to_vec().expect("read failed"), [value; LEN]);
                }
            });
        }
    });
    Ok(())
}

/// Without caching, each buffer is allocated from the driver, and a dropped copy waits.
#[driver_test]
fn cache_that_is_off_calls_the_driver(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let cache = PinnedCache::with_options(stream.context(), &options().with_cache(false))?;
    assert_eq!(cache.options().segment_bytes, SEGMENT);
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    for value in 0..3 {
        let source = test.assert_calls(Function::cuMemHostAlloc, 1, || {
            PinnedBuffer::filled_in(LEN, value, &cache)
        })?;
        test.assert_calls(Function::cuMemFreeHost, 1, || {
            copy::upload(&stream, source, &mut target).map(drop)
        })
        .map_err(|returned| returned.error)?;
    }
    assert_eq!(target.to_vec()?, [2; LEN]);
    Ok(())
}

/// Memory of a NUMA node is cached like any other.
#[driver_test]
fn memory_of_a_node_is_cached(test: &TestDriver) -> TestResult {
    let context = test.context();
    let device = test.device();
    let node = device.attribute(DeviceAttribute::HOST_NUMA_ID)?;
    let is_supported =
        device.attribute(DeviceAttribute::HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)?;
    let Some(node) = node.filter(|_| is_supported && cfg!(target_os = "linux")) else {
        return curium_tests::skip("no NUMA node with memory");
    };
    let options = options().with_max_bytes(64 << 20).with_node(node);
    let cache = PinnedCache::with_options(&context, &options)?;
    let stream = context.stream()?;
    let mut target = DeviceBuffer::<u32>::zeroed(&stream, LEN)?;
    let source = PinnedBuffer::filled_in(LEN, 5_u32, &cache)?;
    let address = source.as_ptr();
    drop(copy::upload(&stream, source, &mut target).map_err(|returned| returned.error)?);
    assert_eq!(target.to_vec()?, [5; LEN]);
    let second = test.assert_calls(Function::cuMemCreate, 0, || {
        PinnedBuffer::<u32>::zeroed_in(LEN, &cache)
    })?;
    assert_ne!(second.as_ptr(), address, "the first awaits its event");
    drop(second);
    cache.trim(0)?;
    assert_eq!(cache.statistics().reserved_bytes, 0);
    Ok(())
}

pub(crate) mod operations {
    use curium_memory::{PinnedBuffer, PinnedCache, PinnedCacheOptions};

    use crate::operations::{LEN, Operation, Operations, boxed, made};

    pub(crate) const BUFFERS: &str = "PinnedBuffer::zeroed_in and PinnedBuffer::uninit_in and \
         PinnedBuffer::filled_in and PinnedBuffer::from_slice_in and PinnedCache::trim";

    const OPERATIONS: &[Operation] = &[
        ("PinnedCache::new", |fixture| {
            made(PinnedCache::new(&fixture.context)?)
        }),
        ("PinnedCache::with_options", |fixture| {
            made(PinnedCache::with_options(
                &fixture.context,
                &PinnedCacheOptions::new(),
            )?)
        }),
        (BUFFERS, |fixture| {
            let cache = PinnedCache::new(&fixture.context)?;
            drop(PinnedBuffer::<u32>::zeroed_in(LEN, &cache)?);
            drop(PinnedBuffer::<u32>::uninit_in(LEN, &cache)?);
            drop(PinnedBuffer::filled_in(LEN, 7_u32, &cache)?);
            drop(PinnedBuffer::from_slice_in(&[5_u32; LEN], &cache)?);
            cache.trim(0).map(boxed)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
