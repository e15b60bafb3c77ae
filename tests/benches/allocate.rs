//! What allocating and freeing costs: the caching resource beside the driver's pool, called as C calls it, in turns.
//!
//! Runs on this machine's driver with `CURIUM_TEST_DRIVER=cuda`, else on the simulator, where the driver's side says nothing of
//! hardware, and the warm path of the cache, which calls no driver, costs what it costs everywhere.
#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::error::Error;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use curium_driver::sys::{CUmemPool_attribute, CUmemoryPool, CUresult};
use curium_driver::{Context, DevicePointer, Driver, Stream, call};
use curium_memory::{CachingOptions, CachingResource, Resource};
use curium_sim::{Config, Simulator};
use curium_tests::uses_cuda;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How much is done.
struct Plan {
    rounds: usize,
    pairs: usize,
    cached_pairs: usize,
    threads: &'static [usize],
    live: &'static [usize],
    largest: usize,
}

const HARDWARE: Plan = Plan {
    rounds: 21,
    pairs: 2_000,
    cached_pairs: 100_000,
    threads: &[1, 2, 4, 8],
    live: &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
    largest: 4 << 30,
};
const SIMULATOR: Plan = Plan {
    rounds: 5,
    pairs: 20,
    cached_pairs: 100_000,
    threads: &[1, 2],
    live: &[1, 100, 10_000, 100_000],
    largest: 1 << 26,
};

/// One way to allocate and free.
trait Way: Sync {
    fn allocate(&self, stream: &Stream, bytes: usize) -> u64;
    fn free(&self, stream: &Stream, address: u64, bytes: usize);
}

/// The driver's pool, by two calls through the table.
struct Twin;

struct Times(Vec<f64>);

impl Way for Twin {
    fn allocate(&self, stream: &Stream, bytes: usize) -> u64 {
        let function = stream.driver().api().cuMemAllocAsync.expect("the driver has pools");
        let mut address = 0;
        // SAFETY: `address` is a valid place for the answer, and the stream is live.
        let code = unsafe { function(&raw mut address, bytes, stream.as_raw()) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "{bytes} bytes of the driver's pool");
        address
    }

    fn free(&self, stream: &Stream, address: u64, _bytes: usize) {
        let function = stream.driver().api().cuMemFreeAsync.expect("the driver has pools");
        // SAFETY: the memory is live, and nothing uses it.
        let code = unsafe { function(address, stream.as_raw()) };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "freeing memory of the driver's pool");
    }
}

impl Way for CachingResource {
    fn allocate(&self, stream: &Stream, bytes: usize) -> u64 {
        Resource::allocate(self, stream, bytes, 256).expect("memory suffices").as_raw()
    }

    fn free(&self, stream: &Stream, address: u64, bytes: usize) {
        // SAFETY: the memory came from this resource with these figures, and nothing uses it.
        unsafe { self.deallocate(stream, DevicePointer::from_raw(address), bytes, 256) }.expect("memory can be freed");
    }
}

impl Times {
    fn median(&mut self) -> f64 {
        self.0.sort_by(f64::total_cmp);
        self.0[self.0.len() / 2]
    }
}

fn main() -> Result<()> {
    let plan = if uses_cuda() { HARDWARE } else { SIMULATOR };
    let simulator;
    let driver = if uses_cuda() {
        Driver::load()?
    } else {
        simulator = Simulator::new(Config::new())?;
        // SAFETY: the simulator implements the driver's functions, and outlives what is made below.
        unsafe { Driver::from_api(simulator.api()) }?
    };
    let context = driver.device(0)?.primary_context()?;
    println!("{} with CUDA {}", context.device().name()?, driver.version());
    keep_the_pool_warm(&context)?;
    by_size(&plan, &context)?;
    by_threads(&plan, &context)?;
    by_live_blocks(&plan, &context)
}

/// Has the driver's pool keep its memory, which is what C does that is in a hurry.
fn keep_the_pool_warm(context: &Context) -> Result<()> {
    let (driver, device) = (context.driver(), context.device().as_raw());
    let mut pool: CUmemoryPool = std::ptr::null_mut();
    // SAFETY: `pool` is a valid place for the answer.
    unsafe { call!(driver, cuDeviceGetMemPool(&raw mut pool, device)) }?;
    let mut threshold = u64::MAX;
    let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the pool is live, and the attribute is a number of 64 bits.
    unsafe { call!(driver, cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast())) }?;
    Ok(())
}

fn cache(context: &Context) -> Result<CachingResource> {
    Ok(CachingResource::with_options(context, &CachingOptions::new().with_cache(true))?)
}

/// Nanoseconds for an allocation and its free.
fn pairs(way: &impl Way, stream: &Stream, bytes: usize, count: usize) -> f64 {
    let begin = Instant::now();
    for _ in 0..count {
        let address = black_box(way.allocate(stream, black_box(bytes)));
        way.free(stream, address, bytes);
    }
    begin.elapsed().as_nanos() as f64 / count as f64
}

fn by_size(plan: &Plan, context: &Context) -> Result<()> {
    println!(
        "\n| bytes | driver's pool, ns | spread | curium, ns | spread | times faster |\n|---|---|---|---|---|---|"
    );
    let sizes = (10..).step_by(2).map(|log| 1_usize << log).take_while(|bytes| *bytes <= plan.largest);
    for bytes in sizes {
        let (stream, cache) = (context.stream()?, cache(context)?);
        pairs(&Twin, &stream, bytes, 2);
        pairs(&cache, &stream, bytes, 2);
        let (mut twin, mut ours) = (Times(Vec::new()), Times(Vec::new()));
        for _ in 0..plan.rounds {
            twin.0.push(pairs(&Twin, &stream, bytes, plan.pairs));
            ours.0.push(pairs(&cache, &stream, bytes, plan.cached_pairs));
            stream.synchronize()?;
        }
        print_row(&bytes.to_string(), &mut twin, &mut ours);
    }
    Ok(())
}

/// Nanoseconds for a pair, of all threads together, each on a stream of its own.
fn crowd(way: &impl Way, context: &Context, threads: usize, count: usize) -> Result<f64> {
    let streams = (0..threads).map(|_| context.stream()).collect::<std::result::Result<Vec<_>, _>>()?;
    let barrier = Barrier::new(threads);
    let slowest = std::thread::scope(|scope| {
        let workers: Vec<_> = streams
            .iter()
            .map(|stream| {
                scope.spawn(|| {
                    pairs(way, stream, 1 << 20, 100);
                    barrier.wait();
                    pairs(way, stream, 1 << 20, count)
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no thread panics")).fold(0.0, f64::max)
    });
    context.synchronize()?;
    Ok(slowest / threads as f64)
}

fn by_threads(plan: &Plan, context: &Context) -> Result<()> {
    println!(
        "\n| threads, 1 MiB | driver's pool, ns | spread | curium, ns | spread | times faster |\n|---|---|---|---|---|---|"
    );
    let cache = cache(context)?;
    let mut first = None;
    for threads in plan.threads {
        let (mut twin, mut ours) = (Times(Vec::new()), Times(Vec::new()));
        for _ in 0..plan.rounds {
            twin.0.push(crowd(&Twin, context, *threads, plan.pairs)?);
            ours.0.push(crowd(&cache, context, *threads, plan.cached_pairs)?);
        }
        print_row(&threads.to_string(), &mut twin, &mut ours);
        let alone = *first.get_or_insert(ours.median());
        println!("  {threads} threads do {:.1} times what one does", alone / ours.median());
    }
    Ok(())
}

/// Nanoseconds for a free and an allocation in the midst of `live` blocks of mixed sizes.
fn churn(way: &impl Way, stream: &Stream, blocks: &mut [(u64, usize)], seed: &mut u64, count: usize) -> f64 {
    let begin = Instant::now();
    for _ in 0..count {
        let index = random(seed) as usize % blocks.len();
        let (address, bytes) = blocks[index];
        way.free(stream, address, bytes);
        let bytes = mixed(seed);
        blocks[index] = (way.allocate(stream, bytes), bytes);
    }
    begin.elapsed().as_nanos() as f64 / count as f64
}

fn by_live_blocks(plan: &Plan, context: &Context) -> Result<()> {
    println!(
        "\n| live blocks, 512 B to 128 KiB | driver's pool, ns | spread | curium, ns | spread | times faster |\n\
         |---|---|---|---|---|---|"
    );
    for live in plan.live {
        let (stream, cache) = (context.stream()?, cache(context)?);
        let (mut twin, mut ours) = (Times(Vec::new()), Times(Vec::new()));
        let (mut seed, mut own_seed) = (1, 1);
        let mut blocks = filled(&Twin, &stream, *live, &mut seed);
        let mut own_blocks = filled(&cache, &stream, *live, &mut own_seed);
        for _ in 0..plan.rounds {
            twin.0.push(churn(&Twin, &stream, &mut blocks, &mut seed, plan.pairs));
            ours.0.push(churn(&cache, &stream, &mut own_blocks, &mut own_seed, plan.cached_pairs / 5));
        }
        print_row(&live.to_string(), &mut twin, &mut ours);
        let statistics = cache.statistics();
        println!(
            "  {} MiB in use of {} MiB reserved, fragmentation of the rest {:.2}, {} of {} served by the thread's bins",
            statistics.live_bytes() >> 20,
            statistics.reserved_bytes >> 20,
            statistics.fragmentation(),
            statistics.hits,
            statistics.allocations
        );
        blocks.into_iter().for_each(|(address, bytes)| Twin.free(&stream, address, bytes));
        own_blocks.into_iter().for_each(|(address, bytes)| cache.free(&stream, address, bytes));
        stream.synchronize()?;
    }
    Ok(())
}

fn filled(way: &impl Way, stream: &Stream, live: usize, seed: &mut u64) -> Vec<(u64, usize)> {
    let block = |bytes| (way.allocate(stream, bytes), bytes);
    (0..live).map(|_| block(mixed(seed))).collect()
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

fn print_row(name: &str, twin: &mut Times, ours: &mut Times) {
    let (theirs, mine) = (twin.median(), ours.median());
    let spread = |times: &Times| format!("{:.0}–{:.0}", times.0[0], times.0[times.0.len() - 1]);
    let faster = theirs / mine;
    println!("| {name} | {theirs:.0} | {} | {mine:.1} | {} | {faster:.1} |", spread(twin), spread(ours));
}
