//! Recovers from out-of-memory: a callback drops results that can be recomputed.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use std::sync::{Arc, Mutex, PoisonError};

use curium::memory::{LimitedResource, Reclaiming, StreamOrdered};
use curium::prelude::*;

/// The memory budget of the program.
const BUDGET: usize = 8 << 20;
const BLOCK: usize = 1 << 20;

type Memory = Arc<Reclaiming<LimitedResource<StreamOrdered>>>;
/// Results that are cached while there is room.
type Kept = Arc<Mutex<Vec<DeviceBuffer<u8, Memory>>>>;

fn main() -> device::Outcome {
    let context = device::driver()?.device(0)?.primary_context()?;
    let stream = context.stream()?;
    let memory: Memory = Arc::new(Reclaiming::new(LimitedResource::new(StreamOrdered, BUDGET)));
    let kept: Kept = Kept::default();
    let given_up = Arc::clone(&kept);
    let _guard = memory.register(0, move |bytes| give_up(&given_up, bytes));

    for _ in 0..BUDGET / BLOCK {
        let result = DeviceBuffer::zeroed_in(&stream, BLOCK, Arc::clone(&memory))?;
        kept.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(result);
    }
    // All of the budget is in use. Without the callback, this allocation would fail.
    let large = DeviceBuffer::<u8, _>::zeroed_in(&stream, 3 * BLOCK, Arc::clone(&memory))?;
    let left = kept.lock().unwrap_or_else(PoisonError::into_inner).len();
    assert_eq!(left, BUDGET / BLOCK - 3);
    println!(
        "{} bytes were allocated once 3 of {} results were given up",
        large.byte_len(),
        BUDGET / BLOCK
    );

    // An allocation beyond the budget fails; the error reports the request, the memory in use and the recovery steps.
    let error = DeviceBuffer::<u8, _>::zeroed_in(&stream, BUDGET + 1, Arc::clone(&memory))
        .expect_err("it is too much");
    assert!(error.is_out_of_memory());
    println!("{error}");
    Ok(())
}

/// Drops the oldest results until `bytes` bytes are free, and returns the number freed.
fn give_up(kept: &Kept, bytes: usize) -> usize {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let count = bytes.div_ceil(BLOCK).min(kept.len());
    kept.drain(..count).map(|result| result.byte_len()).sum()
}
