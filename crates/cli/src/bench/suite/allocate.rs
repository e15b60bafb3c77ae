//! Cost of allocation and deallocation: the caching resource compared with the driver's functions,
//! called as in C.

mod blocks;
mod source;

use std::cell::Cell;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use curium::memory::Resource;
use curium::prelude::{Context, DeviceBuffer, Stream};

use self::blocks::Blocks;
use self::source::{DriverAllocator, Pool, Source};
use super::{Comparison, Implementation, Measurement, Observer, Plan};

/// The kind of measurement, and the functions that C calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// One block at a time, by size.
    Bytes(DriverAllocator),
    /// One buffer at a time, which tracks its accesses and frees itself, with a clone of the
    /// resource.
    Buffer,
    /// One buffer at a time that borrows the resource.
    BorrowingBuffer,
    /// One block at a time on each of several threads.
    Threads,
    /// A deallocation and an allocation among live blocks of mixed sizes.
    Live(DriverAllocator),
}

/// One measurement of a kind.
struct Case<'a> {
    context: &'a Context,
    plan: &'a Plan,
    kind: Kind,
    value: usize,
    /// Curium's time on one thread, the reference for several threads.
    single_thread_time: &'a Cell<Option<f64>>,
}

const KINDS: [Kind; 7] = [
    Kind::Bytes(DriverAllocator::Pool),
    Kind::Bytes(DriverAllocator::Synchronous),
    Kind::Buffer,
    Kind::BorrowingBuffer,
    Kind::Threads,
    Kind::Live(DriverAllocator::Pool),
    Kind::Live(DriverAllocator::Synchronous),
];

/// The block size for several threads.
const SHARED_BYTES: usize = 1 << 20;

pub(super) fn ids(plan: &Plan) -> Vec<String> {
    KINDS
        .iter()
        .flat_map(|kind| kind.values(plan).iter().map(|value| kind.id(*value)))
        .collect()
}

pub(super) fn run(context: &Context, plan: &Plan, observe: &mut Observer<'_>) -> Result<()> {
    if !ids(plan).iter().any(|id| plan.wants(id)) {
        return Ok(());
    }
    Pool::current(context)?.keep_warm()?;
    for kind in KINDS {
        let single_thread_time = Cell::new(None);
        for &value in kind.values(plan) {
            if !plan.wants(&kind.id(value)) {
                continue;
            }
            let case = Case {
                context,
                plan,
                kind,
                value,
                single_thread_time: &single_thread_time,
            };
            case.run(observe)?;
        }
    }
    Ok(())
}

impl Kind {
    fn values(self, plan: &Plan) -> &'static [usize] {
        match self {
            Self::Bytes(_) | Self::Buffer | Self::BorrowingBuffer => plan.sizes,
            Self::Threads => plan.threads,
            Self::Live(DriverAllocator::Pool) => plan.live,
            Self::Live(DriverAllocator::Synchronous) => plan.synchronous_live,
        }
    }

    fn id(self, value: usize) -> String {
        let group = match self {
            Self::Bytes(DriverAllocator::Pool) => "bytes",
            Self::Bytes(DriverAllocator::Synchronous) => "plain-bytes",
            Self::Buffer => "buffer",
            Self::BorrowingBuffer => "borrowing-buffer",
            Self::Threads => "threads",
            Self::Live(DriverAllocator::Pool) => "live",
            Self::Live(DriverAllocator::Synchronous) => "plain-live",
        };
        format!("allocate/{group}/{value}")
    }

    fn driver_allocator(self) -> DriverAllocator {
        match self {
            Self::Bytes(allocator) | Self::Live(allocator) => allocator,
            Self::Buffer | Self::BorrowingBuffer | Self::Threads => DriverAllocator::Pool,
        }
    }
}

impl Case<'_> {
    fn run(&self, observe: &mut Observer<'_>) -> Result<()> {
        let source = Source::new(self.context, self.kind.driver_allocator())?;
        match self.kind {
            Kind::Threads => self.run_by_threads(&source, observe),
            // `cuMemAlloc` allocates in the current context.
            _ => self.context.scoped(|| match self.kind {
                Kind::Live(_) => self.run_by_live_blocks(&source, observe),
                _ => self.run_by_size(&source, observe),
            })?,
        }
    }

    fn run_by_size(&self, source: &Source, observe: &mut Observer<'_>) -> Result<()> {
        let stream = self.context.stream()?;
        let run = |implementation, count| {
            let time = match (implementation, self.kind) {
                (Implementation::Curium, Kind::Buffer) => {
                    measure_buffers(|| source.cache.clone(), &stream, self.value, count)?
                }
                (Implementation::Curium, Kind::BorrowingBuffer) => {
                    measure_buffers(|| &source.cache, &stream, self.value, count)?
                }
                _ => measure_pairs(source, implementation, &stream, self.value, count)?,
            };
            stream.synchronize()?;
            Ok(time)
        };
        let counts = Implementation::ALL.map(|implementation| self.count(implementation));
        observe(self.measurement(counts, run).compare()?)
    }

    /// Returns the time per pair of all threads together, each on its own stream.
    fn run_by_threads(&self, source: &Source, observe: &mut Observer<'_>) -> Result<()> {
        let threads = self.value;
        let streams = (0..threads)
            .map(|_| self.context.stream())
            .collect::<Result<Vec<_>, _>>()?;
        let run = |implementation, count: usize| {
            let each = count.div_ceil(threads);
            let slowest = measure_in_parallel(source, implementation, &streams, each)?;
            self.context.synchronize()?;
            // The threads round the number of pairs up.
            Ok(slowest.mul_f64(count as f64 / (each * threads) as f64))
        };
        let counts = Implementation::ALL.map(|implementation| self.count(implementation) * threads);
        let mut comparison = self.measurement(counts, run).compare()?;
        comparison.note = Some(self.rate(&comparison));
        observe(comparison)
    }

    /// Returns Curium's speedup on several threads over one.
    fn rate(&self, comparison: &Comparison) -> String {
        let time = comparison.curium.median();
        let single = self.single_thread_time.get();
        let single = single.unwrap_or(time * self.value as f64);
        self.single_thread_time.set(Some(single));
        format!("{:.1} x Curium's single-thread rate", single / time)
    }

    /// Returns the time of a deallocation and an allocation. Both implementations make equally
    /// many, so that the fragmentation is comparable.
    fn run_by_live_blocks(&self, source: &Source, observe: &mut Observer<'_>) -> Result<()> {
        let stream = self.context.stream()?;
        let pool = Pool::current(self.context)?;
        pool.trim()?;
        let mut c = Blocks::new(source, Implementation::C, &stream);
        let mut curium = Blocks::new(source, Implementation::Curium, &stream);
        c.fill(self.value)?;
        curium.fill(self.value)?;
        let count = if self.kind.driver_allocator() == DriverAllocator::Synchronous {
            self.plan.synchronous_pairs
        } else {
            self.plan.replaced
        };
        let measurement =
            self.measurement([count; 2], |implementation, count| match implementation {
                Implementation::C => c.replace(count),
                Implementation::Curium => curium.replace(count),
            });
        let mut comparison = measurement.compare()?;
        let frees = count * (comparison.c.count() + 1);
        comparison.note = Some(self.fragmentation(source, &pool, frees)?);
        drop(c);
        drop(curium);
        stream.synchronize()?;
        observe(comparison)
    }

    /// Describes the used part of the reserved memory and its fragmentation.
    fn fragmentation(&self, source: &Source, pool: &Pool<'_>, frees: usize) -> Result<String> {
        let cache = source.cache.statistics();
        let live = cache.live_bytes() >> 20;
        let reserved = cache.reserved_bytes >> 20;
        let fragmented = 100.0 * cache.fragmentation();
        let mut note = format!(
            "after {frees} frees: Curium {live} of {reserved} MiB in use, {fragmented:.0} % of the rest fragmented"
        );
        if self.kind.driver_allocator() == DriverAllocator::Pool {
            let used = pool.used_bytes()? >> 20;
            let reserved = pool.reserved_bytes()? >> 20;
            note += &format!("; C {used} of {reserved} MiB");
        }
        Ok(note)
    }

    fn measurement<'a>(
        &self,
        batches: [usize; 2],
        run: impl FnMut(Implementation, usize) -> Result<Duration> + 'a,
    ) -> Measurement<'a> {
        let rounds = if self.kind.driver_allocator() == DriverAllocator::Synchronous {
            self.plan.synchronous_rounds()
        } else {
            self.plan.rounds
        };
        Measurement::new(self.kind.id(self.value), rounds, batches, run)
    }

    /// Returns the number of pairs per round.
    fn count(&self, implementation: Implementation) -> usize {
        match (implementation, self.kind) {
            (Implementation::C, Kind::Bytes(DriverAllocator::Synchronous)) => {
                self.plan.synchronous_pairs
            }
            (Implementation::C, _) => self.plan.pool_pairs,
            (Implementation::Curium, Kind::Buffer | Kind::BorrowingBuffer) => {
                self.plan.cached_pairs.div_ceil(5)
            }
            (Implementation::Curium, _) => self.plan.cached_pairs,
        }
    }
}

fn measure_pairs(
    source: &Source,
    implementation: Implementation,
    stream: &Stream,
    bytes: usize,
    count: usize,
) -> Result<Duration> {
    let begin = Instant::now();
    for _ in 0..count {
        let address = black_box(source.allocate(implementation, stream, black_box(bytes))?);
        source.free(implementation, stream, address, bytes)?;
    }
    Ok(begin.elapsed())
}

fn measure_buffers<R: Resource>(
    resource: impl Fn() -> R,
    stream: &Stream,
    bytes: usize,
    count: usize,
) -> Result<Duration> {
    let begin = Instant::now();
    for _ in 0..count {
        drop(black_box(DeviceBuffer::<u8, _>::uninit_in(
            stream,
            black_box(bytes),
            resource(),
        )?));
    }
    Ok(begin.elapsed())
}

/// Returns the time of the slowest of several threads, which start together and make `count` pairs
/// each.
fn measure_in_parallel(
    source: &Source,
    implementation: Implementation,
    streams: &[Stream],
    count: usize,
) -> Result<Duration> {
    let barrier = &Barrier::new(streams.len());
    let times = thread::scope(|scope| {
        let workers: Vec<_> = streams
            .iter()
            .map(|stream| {
                scope.spawn(move || {
                    let warm_up = count.div_ceil(20);
                    let warm = measure_pairs(source, implementation, stream, SHARED_BYTES, warm_up);
                    barrier.wait();
                    warm.and(measure_pairs(
                        source,
                        implementation,
                        stream,
                        SHARED_BYTES,
                        count,
                    ))
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no thread panics"))
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(times.into_iter().max().unwrap_or_default())
}
