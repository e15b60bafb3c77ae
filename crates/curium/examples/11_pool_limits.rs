//! Allocates from a cache that reuses freed memory without driver calls, within a limit, and counts
//! the memory in use.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

mod device;

use curium::memory::{CachingOptions, CachingResource, LimitedResource, Statistics};
use curium::prelude::*;

fn main() -> device::Outcome {
    let context = device::driver()?.device(0)?.primary_context()?;
    let stream = context.stream()?;
    let cache = CachingResource::with_options(&context, &CachingOptions::new().with_cache(true))?;
    let memory = Statistics::new(LimitedResource::new(cache, 64 << 20));

    for round in 0..1_000 {
        let mut batch = DeviceBuffer::<f32, _>::zeroed_in(&stream, 1 << 18, &memory)?;
        batch.fill(round as f32)?;
        // The buffer is freed here in stream order: the next iteration reuses the memory without
        // waiting.
    }
    stream.synchronize()?;

    let refused = DeviceBuffer::<u8, _>::uninit_in(&stream, 65 << 20, &memory)
        .expect_err("the limit is 64 MiB");
    assert!(refused.is_out_of_memory());
    let counts = memory.counts();
    let cached = memory.inner().inner().statistics();
    assert_eq!(
        (counts.allocations, counts.live, counts.failures),
        (1_000, 0, 1)
    );
    println!(
        "{} allocations, at most {} MiB in use, {} MiB from the driver",
        counts.allocations,
        counts.peak_bytes >> 20,
        cached.reserved_bytes >> 20
    );
    println!("beyond the limit: {refused}");
    Ok(())
}
