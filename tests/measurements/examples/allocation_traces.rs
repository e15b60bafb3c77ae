//! Replays traces of allocations on the caching resource and on a memory pool of the driver, and
//! prints what each reserves beyond the memory in use, how long the calls take, and how often the
//! caching resource grew or mapped memory again in each repetition.
//!
//! The arguments are traces; without any, the traces in `tests/traces` are replayed. Runs on this
//! machine's driver with `CURIUM_TEST_DRIVER=cuda`, otherwise on the simulator, whose times are not
//! those of hardware.
#![expect(clippy::print_stdout, reason = "it reports")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs};

use curium_diagnostics::AllocationLog;
use curium_driver::{Context, DevicePointer, Driver, Result, Stream};
use curium_memory::{CachingOptions, CachingResource, MemoryPool, Resource};
use curium_sim::{Config, Simulator};
use curium_tests::uses_cuda;

/// A resource, and the time of its longest call.
struct Timed<R> {
    inner: R,
    longest: AtomicU64,
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut paths: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    if paths.is_empty() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces");
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                paths.push(path);
            }
        }
        paths.sort();
    }
    if uses_cuda() {
        return replay_all(&Driver::load()?, &paths);
    }
    let simulator = Simulator::new(Config::new())?;
    replay_all(&simulator.driver::<Driver>()?, &paths)
}

/// The number of times that each trace is replayed, and the repetitions that are printed.
const REPETITIONS: usize = 8;
const PRINTED: [usize; 4] = [1, 2, 4, REPETITIONS];

fn replay_all(driver: &Driver, paths: &[PathBuf]) -> std::result::Result<(), Box<dyn Error>> {
    let device = driver.device(0)?;
    let context = device.primary_context()?;
    for path in paths {
        let log: AllocationLog = fs::read_to_string(path)?.parse()?;
        println!("{}", path.display());
        let free_before = context.memory_info()?.free;
        let options = CachingOptions::new().with_cache(true);
        let caching = Timed::new(CachingResource::with_options(&context, &options)?);
        let mut before = caching.inner.statistics();
        for repetition in 1..=REPETITIONS {
            let (peak, total) = caching.replay(&log, &context)?;
            let after = caching.inner.statistics();
            let longest = caching.longest();
            if PRINTED.contains(&repetition) {
                print_line(
                    "caching resource",
                    repetition,
                    peak,
                    after.reserved_bytes,
                    total,
                    longest,
                );
                println!(
                    "    grew {} times, mapped again {} times",
                    after.growths - before.growths,
                    after.stitches - before.stitches
                );
            }
            before = after;
        }
        let used = free_before.saturating_sub(context.memory_info()?.free) as u64;
        println!(
            "    beside it, the driver uses {:.1} MiB for mappings",
            used.saturating_sub(before.reserved_bytes) as f64 / f64::from(1 << 20)
        );
        drop(caching);
        let pool = MemoryPool::new(&device)?;
        pool.set_release_threshold(u64::MAX)?;
        let pool = Timed::new(pool);
        for repetition in 1..=REPETITIONS {
            let (peak, total) = pool.replay(&log, &context)?;
            let reserved = pool.inner.statistics()?.reserved_high;
            let longest = pool.longest();
            if PRINTED.contains(&repetition) {
                print_line("driver's pool", repetition, peak, reserved, total, longest);
            }
        }
    }
    Ok(())
}

fn print_line(
    name: &str,
    repetition: usize,
    peak: u64,
    reserved: u64,
    total: Duration,
    longest: Duration,
) {
    const GIB: f64 = (1_u64 << 30) as f64;
    println!(
        "  {name:<16} {repetition} peak {:6.2} GiB in use, {:6.2} GiB reserved ({:.3}), {:8.2} ms in all, {:8.3} ms the longest call",
        peak as f64 / GIB,
        reserved as f64 / GIB,
        reserved as f64 / peak as f64,
        total.as_secs_f64() * 1e3,
        longest.as_secs_f64() * 1e3,
    );
}

impl<R: Resource> Timed<R> {
    fn new(inner: R) -> Self {
        Self {
            inner,
            longest: AtomicU64::new(0),
        }
    }

    /// Replays a trace, and returns the peak of the memory in use and the time of the replay.
    fn replay(&self, log: &AllocationLog, context: &Context) -> Result<(u64, Duration)> {
        let begin = Instant::now();
        let replay = log.replay(self, context)?;
        let elapsed = begin.elapsed();
        // The memory of the streams that end is available to the next ones.
        context.synchronize()?;
        Ok((replay.peak_bytes, elapsed))
    }

    /// Returns the time of the longest call since this was last called.
    fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest.swap(0, Ordering::Relaxed))
    }

    fn timed<T>(&self, call: impl FnOnce(&R) -> T) -> T {
        let begin = Instant::now();
        let result = call(&self.inner);
        let nanoseconds = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.longest.fetch_max(nanoseconds, Ordering::Relaxed);
        result
    }
}

// SAFETY: every call is that of the inner resource.
unsafe impl<R: Resource> Resource for Timed<R> {
    fn allocate(
        &self,
        stream: &Stream,
        bytes: usize,
        alignment: usize,
    ) -> Result<DevicePointer<u8>> {
        self.timed(|inner| inner.allocate(stream, bytes, alignment))
    }

    unsafe fn deallocate(
        &self,
        stream: &Stream,
        pointer: DevicePointer<u8>,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        // SAFETY: the caller keeps the contract of the inner resource.
        self.timed(|inner| unsafe { inner.deallocate(stream, pointer, bytes, alignment) })
    }
}
