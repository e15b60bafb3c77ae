//! Allocates and frees cached memory, and copies small slices to the device, many times, for
//! `cargo xtask cost`, which counts the instructions.
//!
//! Usage: `allocation_cost MODE COUNT`. A mode is the name of the function that is counted.

use std::error::Error;
use std::hint::black_box;

use curium_driver::{Result, Stream};
use curium_memory::{
    CachingOptions, CachingResource, DeviceBuffer, PinnedBuffer, PinnedCache, PinnedCacheOptions,
    Resource,
};
use curium_tests::idle_driver;

const BYTES: usize = 4096;

/// The size in bytes of an upload.
const UPLOADED: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [mode, count] = arguments.as_slice() else {
        return Err("usage: allocation_cost MODE COUNT".into());
    };
    let context = idle_driver().device(0)?.primary_context()?;
    let options = CachingOptions::new()
        .with_cache(true)
        .with_segment_bytes(2 << 20);
    let cache = CachingResource::with_options(&context, &options)?;
    let stream = context.stream()?;
    // The first allocation of a thread misses the cache.
    drop(DeviceBuffer::<u8, _>::uninit_in(
        &stream,
        BYTES,
        cache.clone(),
    )?);
    match (mode.as_str(), count.parse()?) {
        ("no_allocations", count) => no_allocations(&cache, &stream, count),
        ("cache_allocations", count) => cache_allocations(&cache, &stream, count)?,
        ("buffer_allocations", count) => buffer_allocations(&cache, &stream, count)?,
        ("pinned_allocations", count) => {
            let options = PinnedCacheOptions::new()
                .with_cache(true)
                .with_segment_bytes(2 << 20);
            let pinned = PinnedCache::with_options(&context, &options)?;
            drop(PinnedBuffer::<u8>::uninit_in(BYTES, &pinned)?);
            pinned_allocations(&pinned, count)?;
        }
        ("small_uploads", count) => {
            let mut target = DeviceBuffer::<u8>::zeroed(&stream, UPLOADED)?;
            target.copy_from_slice(&[1; UPLOADED])?;
            small_uploads(&mut target, count)?;
        }
        (other, _) => return Err(format!("there is no mode {other}").into()),
    }
    Ok(())
}

/// The loop itself.
#[inline(never)]
fn no_allocations(cache: &CachingResource, stream: &Stream, count: u64) {
    for _ in 0..count {
        black_box((black_box(cache), black_box(stream), black_box(BYTES)));
    }
}

#[inline(never)]
fn cache_allocations(cache: &CachingResource, stream: &Stream, count: u64) -> Result<()> {
    for _ in 0..count {
        let cache = black_box(cache);
        let stream = black_box(stream);
        let bytes = black_box(BYTES);
        let pointer = black_box(cache.allocate(stream, bytes, 256)?);
        // SAFETY: the memory was allocated from this resource with this size and alignment, and is
        // not in use.
        unsafe { cache.deallocate(stream, pointer, bytes, 256) }?;
    }
    Ok(())
}

#[inline(never)]
fn buffer_allocations(cache: &CachingResource, stream: &Stream, count: u64) -> Result<()> {
    for _ in 0..count {
        let cache = black_box(cache);
        let stream = black_box(stream);
        let bytes = black_box(BYTES);
        drop(black_box(DeviceBuffer::<u8, _>::uninit_in(
            stream,
            bytes,
            cache.clone(),
        )?));
    }
    Ok(())
}

#[inline(never)]
fn pinned_allocations(cache: &PinnedCache, count: u64) -> Result<()> {
    for _ in 0..count {
        let cache = black_box(cache);
        let bytes = black_box(BYTES);
        drop(black_box(PinnedBuffer::<u8>::uninit_in(bytes, cache)?));
    }
    Ok(())
}

#[inline(never)]
fn small_uploads(target: &mut DeviceBuffer<u8>, count: u64) -> Result<()> {
    for _ in 0..count {
        black_box(&mut *target).copy_from_slice(black_box(&[1; UPLOADED]))?;
    }
    Ok(())
}
