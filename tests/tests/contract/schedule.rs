//! Schedules: an unsynchronized program fails for some seed, and a synchronized one succeeds for
//! all.
#![cfg(not(miri))]

use curium_driver::{Event, EventFlags, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_tests::stream_work::{copy_without_waiting, fill};
use curium_tests::{
    TestDriver, TestResult, looks_for_races, on_driver, on_simulator, skip, uses_cuda,
};

const LEN: usize = 256;
const PRODUCED: u32 = 7;

fn buffer(stream: &Stream) -> DeviceBuffer<u32> {
    DeviceBuffer::from_slice(stream, &[0; LEN]).expect("allocation failed")
}

/// Runs a producer and a consumer on two streams, and returns `true` if the consumer reads the
/// complete product.
fn consumer_sees_the_product(test: &TestDriver, waits: bool) -> TestResult<bool> {
    let [producer, consumer] = [test.stream(), test.stream()];
    let mut product = buffer(&producer);
    let copy = buffer(&consumer);
    fill(&producer, &mut product, PRODUCED)?;
    if waits {
        let produced = Event::new(producer.context(), EventFlags::DISABLE_TIMING)?;
        produced.record(&producer)?;
        consumer.wait_event(&produced)?;
    }
    // SAFETY: the buffers outlive the copy, which is waited for below; a possible race is the
    // subject of the test.
    unsafe { copy_without_waiting(&consumer, &copy, &product) }?;
    test.context().synchronize()?;
    Ok(copy.to_vec()? == [PRODUCED; LEN])
}

/// A consumer without a wait misses the product for some of a hundred seeds.
#[test]
fn some_seed_finds_a_missing_wait() -> TestResult {
    if looks_for_races() {
        return skip("too slow while the simulator looks for races");
    }
    let mut missed = 0;
    for seed in 0..100 {
        on_simulator(Config::new().with_seed(seed), |test, _| -> TestResult {
            missed += u32::from(!consumer_sees_the_product(test, false)?);
            Ok(())
        })?;
    }
    assert!(
        missed > 0 || uses_cuda(),
        "none of a hundred schedules exposed the missing wait"
    );
    Ok(())
}

/// A consumer that waits reads the result for each of a thousand seeds.
#[test]
fn waiting_consumer_is_right() -> TestResult {
    on_driver(|test| -> TestResult {
        assert!(consumer_sees_the_product(test, true)?);
        Ok(())
    })?;
    for seed in 0..1000 {
        on_simulator(Config::new().with_seed(seed), |test, _| -> TestResult {
            assert!(consumer_sees_the_product(test, true)?, "seed {seed}");
            Ok(())
        })?;
    }
    Ok(())
}
