//! Recovers from out-of-memory: a callback drops results that can be recomputed.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use std::sync::Arc;

use curium::memory::{LimitedResource, Reclaiming, StreamOrdered};
use curium::prelude::*;
use parking_lot::Mutex;

/// The memory budget of the program.
const BUDGET: usize = 8 << 20;
const BLOCK: usize = 1 << 20;

type Memory = Arc<Reclaiming<LimitedResource<StreamOrdered>>>;
/// Results that are cached while there is room.
type Results = Arc<Mutex<Vec<DeviceBuffer<u8, Memory>>>>;

fn main() -> device::Outcome {
    let context = device::driver()?.device(0)?.primary_context()?;
    let stream = context.stream()?;
    let memory: Memory = Arc::new(Reclaiming::new(LimitedResource::new(StreamOrdered, BUDGET)));
    let results = Results::default();
    let reclaimable = Arc::clone(&results);
    let _guard = memory.register(0, move |bytes| drop_oldest(&reclaimable, bytes));

    for _ in 0..BUDGET / BLOCK {
        let result = DeviceBuffer::zeroed_in(&stream, BLOCK, Arc::clone(&memory))?;
        results.lock().push(result);
    }
    // All of the budget is in use. Without the callback, this allocation would fail.
    let large = DeviceBuffer::<u8, _>::zeroed_in(&stream, 3 * BLOCK, Arc::clone(&memory))?;
    assert_eq!(results.lock().len(), BUDGET / BLOCK - 3);
    println!(
        "{} bytes were allocated once 3 of {} results were dropped",
        large.byte_len(),
        BUDGET / BLOCK
    );

    // An allocation beyond the budget fails; the error reports the request, the memory in use and
    // the recovery steps.
    let error = DeviceBuffer::<u8, _>::zeroed_in(&stream, BUDGET + 1, Arc::clone(&memory))
        .expect_err("it is too much");
    assert!(error.is_out_of_memory());
    println!("{error}");
    Ok(())
}

/// Drops the oldest results until `bytes` bytes are free, and returns the number freed.
fn drop_oldest(results: &Results, bytes: usize) -> usize {
    let mut results = results.lock();
    let count = bytes.div_ceil(BLOCK).min(results.len());
    results.drain(..count).map(|result| result.byte_len()).sum()
}
