//! Goes on when memory is short: whoever holds what can be computed again gives it up.
#![expect(clippy::print_stdout, reason = "an example says what it did")]

mod device;

use std::sync::{Arc, Mutex, PoisonError};

use curium::memory::{LimitedResource, Reclaiming, StreamOrdered};
use curium::prelude::*;

/// What the program may use.
const BUDGET: usize = 8 << 20;
const BLOCK: usize = 1 << 20;

type Memory = Arc<Reclaiming<LimitedResource<StreamOrdered>>>;
/// Results that are kept while there is room.
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
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(result);
    }
    // All of the budget is taken. This would fail, if nobody gave anything up.
    let large = DeviceBuffer::<u8, _>::zeroed_in(&stream, 3 * BLOCK, Arc::clone(&memory))?;
    let left = kept.lock().unwrap_or_else(PoisonError::into_inner).len();
    assert_eq!(left, BUDGET / BLOCK - 3);
    println!("{} bytes were allocated once 3 of {} results were given up", large.byte_len(), BUDGET / BLOCK);

    // What nobody can give is an error that says what was asked for, what there is and what was tried.
    let error = DeviceBuffer::<u8, _>::zeroed_in(&stream, BUDGET + 1, Arc::clone(&memory)).expect_err("it is too much");
    assert!(error.is_out_of_memory());
    println!("{error}");
    Ok(())
}

/// Drops the oldest results until so many bytes are free, and says how many are.
fn give_up(kept: &Kept, bytes: usize) -> usize {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let count = bytes.div_ceil(BLOCK).min(kept.len());
    kept.drain(..count).map(|result| result.byte_len()).sum()
}
