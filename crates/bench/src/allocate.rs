//! What allocating and freeing costs: the caching resource beside the driver's pool, called as C calls it.

use std::hint::black_box;
use std::ptr;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use curium_driver::sys::{CUmemPool_attribute, CUmemoryPool};
use curium_driver::{Context, DevicePointer, Function, Stream};
use curium_memory::{CachingOptions, CachingResource, Resource};

use crate::error::checked;
use crate::{Comparison, Error, Plan, Result, Unit, Way};

/// The alignment that the driver's pool gives.
const ALIGN: usize = 256;

/// The memory of one measurement: the twin is the driver's pool, by two calls through the table.
struct Source<'a> {
    context: &'a Context,
    cache: CachingResource,
    plan: &'a Plan,
}

/// Blocks of mixed sizes that are live, of one way. They are freed when this is dropped.
struct Blocks<'a> {
    source: &'a Source<'a>,
    way: Way,
    stream: &'a Stream,
    blocks: Vec<(u64, usize)>,
    seed: u64,
}

pub(crate) fn ids(plan: &Plan) -> Vec<String> {
    let sizes = plan.sizes.iter().map(|bytes| size_id(*bytes));
    let threads = plan.threads.iter().map(|threads| threads_id(*threads));
    sizes.chain(threads).chain(plan.live.iter().map(|live| live_id(*live))).collect()
}

fn size_id(bytes: usize) -> String {
    format!("allocate/bytes/{bytes}")
}

fn threads_id(threads: usize) -> String {
    format!("allocate/threads/{threads}")
}

fn live_id(live: usize) -> String {
    format!("allocate/live/{live}")
}

pub(crate) fn run(context: &Context, plan: &Plan, observe: &mut dyn FnMut(Comparison) -> Result<()>) -> Result<()> {
    if !ids(plan).iter().any(|id| plan.wants(id)) {
        return Ok(());
    }
    keep_the_pool_warm(context)?;
    for &bytes in plan.sizes.iter().filter(|bytes| plan.wants(&size_id(**bytes))) {
        observe(Source::new(context, plan)?.by_size(bytes)?)?;
    }
    for &threads in plan.threads.iter().filter(|threads| plan.wants(&threads_id(**threads))) {
        observe(Source::new(context, plan)?.by_threads(threads)?)?;
    }
    for &live in plan.live.iter().filter(|live| plan.wants(&live_id(**live))) {
        observe(Source::new(context, plan)?.by_live_blocks(live)?)?;
    }
    Ok(())
}

/// Has the driver's pool keep its memory, which is what C does that is in a hurry.
fn keep_the_pool_warm(context: &Context) -> Result<()> {
    let (api, device) = (context.driver().api(), context.device().as_raw());
    let mut pool: CUmemoryPool = ptr::null_mut();
    let get = api.cuDeviceGetMemPool.ok_or(Error::Missing(Function::cuDeviceGetMemPool))?;
    // SAFETY: `pool` is a valid place for the answer.
    checked(Function::cuDeviceGetMemPool, unsafe { get(&raw mut pool, device) })?;
    let mut threshold = u64::MAX;
    let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    let set = api.cuMemPoolSetAttribute.ok_or(Error::Missing(Function::cuMemPoolSetAttribute))?;
    // SAFETY: the pool is live, and the attribute is a number of 64 bits.
    checked(Function::cuMemPoolSetAttribute, unsafe { set(pool, attribute, (&raw mut threshold).cast()) })
}

impl<'a> Source<'a> {
    fn new(context: &'a Context, plan: &'a Plan) -> Result<Self> {
        let cache = CachingResource::with_options(context, &CachingOptions::new().with_cache(true))?;
        Ok(Self { context, cache, plan })
    }

    fn by_size(&self, bytes: usize) -> Result<Comparison> {
        let stream = self.context.stream()?;
        Comparison::measure(size_id(bytes), Unit::Nanoseconds, self.plan.rounds, |way| {
            let time = self.pairs(way, &stream, bytes, self.count(way))?;
            stream.synchronize()?;
            Ok(time)
        })
    }

    /// Nanoseconds for a pair, of all threads together, each on a stream of its own.
    fn by_threads(&self, threads: usize) -> Result<Comparison> {
        let streams = (0..threads).map(|_| self.context.stream()).collect::<Result<Vec<_>, _>>()?;
        Comparison::measure(threads_id(threads), Unit::Nanoseconds, self.plan.rounds, |way| {
            let slowest = self.crowd(way, &streams)?;
            self.context.synchronize()?;
            Ok(slowest / threads as f64)
        })
    }

    /// Nanoseconds for a free and an allocation in the midst of `live` blocks of mixed sizes.
    fn by_live_blocks(&self, live: usize) -> Result<Comparison> {
        let stream = self.context.stream()?;
        let [mut c, mut curium] = [Way::C, Way::Curium].map(|way| Blocks::new(self, way, &stream));
        c.fill(live)?;
        curium.fill(live)?;
        let comparison = Comparison::measure(live_id(live), Unit::Nanoseconds, self.plan.rounds, |way| {
            let blocks = if way == Way::C { &mut c } else { &mut curium };
            blocks.churn(self.count(way).div_ceil(5))
        })?;
        let statistics = self.cache.statistics();
        let note = format!("{} of {} MiB in use", statistics.live_bytes() >> 20, statistics.reserved_bytes >> 20);
        drop((c, curium));
        stream.synchronize()?;
        Ok(Comparison { note: Some(note), ..comparison })
    }

    fn count(&self, way: Way) -> usize {
        if way == Way::C { self.plan.pool_pairs } else { self.plan.cached_pairs }
    }

    fn pairs(&self, way: Way, stream: &Stream, bytes: usize, count: usize) -> Result<f64> {
        let begin = Instant::now();
        for _ in 0..count {
            let address = black_box(self.allocate(way, stream, black_box(bytes))?);
            self.free(way, stream, address, bytes)?;
        }
        Ok(begin.elapsed().as_nanos() as f64 / count as f64)
    }

    fn crowd(&self, way: Way, streams: &[Stream]) -> Result<f64> {
        let barrier = Barrier::new(streams.len());
        let time = |stream| {
            let warm = self.pairs(way, stream, 1 << 20, self.count(way).div_ceil(20));
            barrier.wait();
            warm.and(self.pairs(way, stream, 1 << 20, self.count(way)))
        };
        let times = thread::scope(|scope| {
            let workers: Vec<_> = streams.iter().map(|stream| scope.spawn(|| time(stream))).collect();
            workers.into_iter().map(|worker| worker.join().expect("no thread panics")).collect::<Result<Vec<_>>>()
        })?;
        Ok(times.into_iter().fold(0.0, f64::max))
    }

    #[inline]
    fn allocate(&self, way: Way, stream: &Stream, bytes: usize) -> Result<u64> {
        if way == Way::Curium {
            return Ok(self.cache.allocate(stream, bytes, ALIGN)?.as_raw());
        }
        let function = Function::cuMemAllocAsync;
        let allocate = stream.driver().api().cuMemAllocAsync.ok_or(Error::Missing(function))?;
        let mut address = 0;
        // SAFETY: `address` is a valid place for the answer, and the stream is live.
        checked(function, unsafe { allocate(&raw mut address, bytes, stream.as_raw()) })?;
        Ok(address)
    }

    #[inline]
    fn free(&self, way: Way, stream: &Stream, address: u64, bytes: usize) -> Result<()> {
        if way == Way::Curium {
            let pointer = DevicePointer::from_raw(address);
            // SAFETY: the memory came from this resource with these figures, and nothing uses it.
            return Ok(unsafe { self.cache.deallocate(stream, pointer, bytes, ALIGN) }?);
        }
        let function = Function::cuMemFreeAsync;
        let free = stream.driver().api().cuMemFreeAsync.ok_or(Error::Missing(function))?;
        // SAFETY: the memory is live, and nothing uses it.
        checked(function, unsafe { free(address, stream.as_raw()) })
    }
}

impl<'a> Blocks<'a> {
    fn new(source: &'a Source<'a>, way: Way, stream: &'a Stream) -> Self {
        Self { source, way, stream, blocks: Vec::new(), seed: 1 }
    }

    fn fill(&mut self, live: usize) -> Result<()> {
        self.blocks.reserve_exact(live);
        while self.blocks.len() < live {
            let block = self.allocate()?;
            self.blocks.push(block);
        }
        Ok(())
    }

    /// Frees one at random and allocates another, so often.
    fn churn(&mut self, count: usize) -> Result<f64> {
        let begin = Instant::now();
        for _ in 0..count {
            let index = random(&mut self.seed) as usize % self.blocks.len();
            let (address, bytes) = self.blocks.swap_remove(index);
            self.source.free(self.way, self.stream, address, bytes)?;
            let block = self.allocate()?;
            self.blocks.push(block);
        }
        Ok(begin.elapsed().as_nanos() as f64 / count as f64)
    }

    fn allocate(&mut self) -> Result<(u64, usize)> {
        let bytes = mixed(&mut self.seed);
        Ok((self.source.allocate(self.way, self.stream, bytes)?, bytes))
    }
}

impl Drop for Blocks<'_> {
    fn drop(&mut self) {
        for (address, bytes) in self.blocks.drain(..) {
            // A failure is one of the measurement, which has been told of it or will be.
            let _ = self.source.free(self.way, self.stream, address, bytes);
        }
    }
}

/// A size from 512 B to 128 KiB, of which each doubling is as likely.
fn mixed(seed: &mut u64) -> usize {
    let number = random(seed) as usize;
    let base = 512 << (number % 8);
    base + (number >> 8) % base
}

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 31)) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_sizes_span_their_range() {
        let mut seed = 1;
        let sizes: Vec<_> = (0..10_000).map(|_| mixed(&mut seed)).collect();
        assert!(sizes.iter().all(|bytes| (512..128 << 10).contains(bytes)));
        assert!(sizes.iter().any(|bytes| *bytes < 1024) && sizes.iter().any(|bytes| *bytes > 64 << 10));
    }
}
