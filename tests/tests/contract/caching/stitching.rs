//! Fragmented memory that is mapped at further addresses.

use curium_driver::{Function, Stream};
use curium_memory::{CachingOptions, CachingResource, Resource};
use curium_sim::Simulator;
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::PART;
use super::block::Block;

const BYTES: usize = PART as usize;

/// Returns a resource whose segments are as small as possible.
fn small_segments(test: &TestDriver) -> TestResult<CachingResource> {
    let options = CachingOptions::new().with_cache(true).with_segment_bytes(1);
    Ok(CachingResource::with_options(&test.context(), &options)?)
}

/// Allocates 16 parts and frees every second of them.
fn comb<'a>(resource: &'a dyn Resource, stream: &'a Stream) -> TestResult<Vec<Block<'a>>> {
    let blocks = (0..16).map(|_| Block::new(resource, stream, BYTES));
    let (freed, kept): (Vec<_>, Vec<_>) = blocks.enumerate().partition(|(index, _)| index % 2 == 0);
    drop(freed);
    stream.synchronize()?;
    Ok(kept.into_iter().map(|(_, block)| block).collect())
}

/// The second time, memory is used at the same addresses without a driver call for it.
#[simulator_test]
fn fragmented_memory_is_mapped_once(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let resource = small_segments(test)?;
    let stream = test.stream();
    let kept = comb(&resource, &stream)?;
    let reserved = resource.statistics().reserved_bytes;
    let large = Block::new(&resource, &stream, 8 * BYTES);
    let address = large.address();
    large.fill(1);
    drop(large);
    let statistics = resource.statistics();
    assert_eq!(statistics.stitches, 1);
    assert_eq!(statistics.reserved_bytes, reserved);
    let calls = mapping_calls(simulator);
    for value in 2..5 {
        // The parts are also used one by one.
        stream.synchronize()?;
        resource.purge()?;
        let small: Vec<_> = (0..8)
            .map(|_| Block::new(&resource, &stream, BYTES))
            .collect();
        small.iter().for_each(|block| block.fill(value));
        assert!(small.iter().all(|block| block.holds(value)));
        drop(small);
        stream.synchronize()?;
        let large = Block::new(&resource, &stream, 8 * BYTES);
        assert_eq!(large.address(), address);
        large.fill(value);
        assert!(large.holds(value));
    }
    assert_eq!(mapping_calls(simulator), calls);
    let statistics = resource.statistics();
    assert_eq!(
        (statistics.stitches, statistics.reserved_bytes),
        (1, reserved)
    );
    drop(kept);
    Ok(())
}

/// Two blocks in use have no physical memory in common.
#[driver_test]
fn blocks_share_no_memory(test: &TestDriver) -> TestResult {
    for seed in 0..3 {
        let mut numbers = fastrand::Rng::with_seed(seed);
        let resource = small_segments(test)?;
        let streams = [test.stream(), test.stream(), test.stream()];
        let mut live = Vec::new();
        for step in 0..120 {
            if live.len() < 12 && numbers.u8(..8) < 5 {
                let stream = &streams[numbers.usize(..streams.len())];
                let bytes = numbers.usize(1..6 * BYTES);
                let block = Block::new(&resource, stream, bytes);
                block.fill(step);
                live.push((step, block));
            } else if !live.is_empty() {
                let (value, block) = live.swap_remove(numbers.usize(..live.len()));
                assert!(block.holds(value), "seed {seed}, step {step}");
            }
        }
        for (value, block) in live {
            assert!(block.holds(value), "seed {seed}");
        }
        assert!(resource.statistics().stitches > 0);
    }
    Ok(())
}

/// Trimming removes a part also from ranges of which other parts are in use.
#[driver_test]
fn parts_are_trimmed_out_of_ranges_in_use(test: &TestDriver) -> TestResult {
    let resource = small_segments(test)?;
    let stream = test.stream();
    let kept = comb(&resource, &stream)?;
    drop(Block::new(&resource, &stream, 8 * BYTES));
    resource.synchronize(&stream)?;
    resource.purge()?;
    let half = Block::new(&resource, &stream, 4 * BYTES);
    half.fill(1);
    stream.synchronize()?;
    resource.trim(&stream, 0)?;
    let statistics = resource.statistics();
    assert_eq!(statistics.reserved_bytes, 12 * PART);
    assert!(half.holds(1));
    // The hole is not used.
    let large = Block::new(&resource, &stream, 8 * BYTES);
    large.fill(2);
    assert!(half.holds(1) && large.holds(2));
    drop((half, large, kept));
    resource.synchronize(&stream)?;
    resource.trim(&stream, 0)?;
    assert_eq!(resource.statistics().reserved_bytes, 0);
    Ok(())
}

/// Returns the number of calls that change mappings.
pub(super) fn mapping_calls(simulator: &Simulator) -> u64 {
    const FUNCTIONS: [Function; 7] = [
        Function::cuMemCreate,
        Function::cuMemRelease,
        Function::cuMemMap,
        Function::cuMemUnmap,
        Function::cuMemSetAccess,
        Function::cuMemAddressReserve,
        Function::cuMemAddressFree,
    ];
    FUNCTIONS
        .map(|function| simulator.calls(function))
        .iter()
        .sum()
}
