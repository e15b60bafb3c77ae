//! Schedules: an unsynchronized program fails for some seed, and a synchronized one succeeds for all.
#![cfg(not(miri))]

use curium_driver::{Event, EventFlags, Stream};
use curium_memory::DeviceBuffer;
use curium_sim::Config;
use curium_tests::stream_work::{copy_without_waiting, fill};
use curium_tests::{TestDriver, looks_for_races, on_driver, on_simulator, uses_cuda};

const LEN: usize = 256;
const PRODUCED: u32 = 7;

fn buffer(stream: &Stream) -> DeviceBuffer<u32> {
    DeviceBuffer::from_slice(stream, &[0; LEN]).expect("memory suffices")
}

/// Runs a producer and a consumer on two streams, and returns `true` if the consumer reads the complete product.
fn consumer_sees_the_product(test: &TestDriver, waits: bool) -> bool {
    let [producer, consumer] = [test.stream(), test.stream()];
    let mut product = buffer(&producer);
    let copy = buffer(&consumer);
    fill(&producer, &mut product, PRODUCED).expect("the buffer can be filled");
    if waits {
        let produced = Event::new(producer.context(), EventFlags::DISABLE_TIMING)
            .expect("an event can be created");
        produced
            .record(&producer)
            .expect("an event can be recorded");
        consumer.wait_event(&produced).expect("a stream can wait");
    }
    // SAFETY: the buffers outlive the copy, which is waited for below; a possible race is the subject of the test.
    unsafe { copy_without_waiting(&consumer, &copy, &product) }.expect("the buffer can be copied");
    test.context().synchronize().expect("the context works");
    copy.to_vec().expect("the buffer can be read") == [PRODUCED; LEN]
}

/// A consumer without a wait misses the product for some of a hundred seeds.
#[test]
fn missing_wait_is_found_by_some_seed() {
    if looks_for_races() {
        return;
    }
    let mut missed = 0;
    for seed in 0..100 {
        on_simulator(Config::new().with_seed(seed), |test, _| {
            missed += u32::from(!consumer_sees_the_product(test, false));
        });
    }
    assert!(
        missed > 0 || uses_cuda(),
        "none of a hundred schedules exposed the missing wait"
    );
}

/// A consumer that waits reads the result for each of a thousand seeds.
#[test]
fn waiting_consumer_is_right_for_every_seed() {
    on_driver(|test| assert!(consumer_sees_the_product(test, true)));
    for seed in 0..1000 {
        on_simulator(Config::new().with_seed(seed), |test, _| {
            assert!(consumer_sees_the_product(test, true), "seed {seed}");
        });
    }
}
