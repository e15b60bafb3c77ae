//! Cost of allocation and deallocation: the caching resource compared with the driver's functions, called as in C.

mod blocks;
mod source;

use std::cell::Cell;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use curium_driver::{Context, Stream};
use curium_memory::{DeviceBuffer, Resource};

use self::blocks::Blocks;
use self::source::{Pool, Source, Twin};
use crate::{Comparison, Measurement, Plan, Result, Visit, Way};

/// The kind of measurement, and the functions that C calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// One block at a time, by size.
    Bytes(Twin),
    /// One buffer at a time, which tracks its accesses and frees itself, with a clone of the resource.
    Buffer,
    /// One buffer at a time that borrows the resource.
    BorrowingBuffer,
    /// One block at a time on each of several threads.
    Threads,
    /// A deallocation and an allocation among live blocks of mixed sizes.
    Live(Twin),
}

/// One measurement of a kind.
struct Case<'a> {
    context: &'a Context,
    plan: &'a Plan,
    kind: Kind,
    value: usize,
    /// Curium's time on one thread, the reference for several threads.
    alone: &'a Cell<Option<f64>>,
}

const KINDS: [Kind; 7] = [
    Kind::Bytes(Twin::Pool),
    Kind::Bytes(Twin::Plain),
    Kind::Buffer,
    Kind::BorrowingBuffer,
    Kind::Threads,
    Kind::Live(Twin::Pool),
    Kind::Live(Twin::Plain),
];

/// The block size for several threads.
const SHARED_BYTES: usize = 1 << 20;

pub(crate) fn ids(plan: &Plan) -> Vec<String> {
    KINDS
        .iter()
        .flat_map(|kind| kind.values(plan).iter().map(|value| kind.id(*value)))
        .collect()
}

pub(crate) fn visit(context: &Context, plan: &Plan, visit: &mut Visit<'_>) -> Result<()> {
    if !ids(plan).iter().any(|id| plan.wants(id)) {
        return Ok(());
    }
    Pool::current(context)?.keep_warm()?;
    for kind in KINDS {
        let alone = Cell::new(None);
        for &value in kind
            .values(plan)
            .iter()
            .filter(|value| plan.wants(&kind.id(**value)))
        {
            Case {
                context,
                plan,
                kind,
                value,
                alone: &alone,
            }
            .visit(visit)?;
        }
    }
    Ok(())
}

impl Kind {
    fn values(self, plan: &Plan) -> &'static [usize] {
        match self {
            Self::Bytes(_) | Self::Buffer | Self::BorrowingBuffer => plan.sizes,
            Self::Threads => plan.threads,
            Self::Live(Twin::Pool) => plan.live,
            Self::Live(Twin::Plain) => plan.plain_live,
        }
    }

    fn id(self, value: usize) -> String {
        let group = match self {
            Self::Bytes(Twin::Pool) => "bytes",
            Self::Bytes(Twin::Plain) => "plain-bytes",
            Self::Buffer => "buffer",
            Self::BorrowingBuffer => "borrowing-buffer",
            Self::Threads => "threads",
            Self::Live(Twin::Pool) => "live",
            Self::Live(Twin::Plain) => "plain-live",
        };
        format!("allocate/{group}/{value}")
    }

    fn twin(self) -> Twin {
        match self {
            Self::Bytes(twin) | Self::Live(twin) => twin,
            Self::Buffer | Self::BorrowingBuffer | Self::Threads => Twin::Pool,
        }
    }
}

impl Case<'_> {
    fn visit(&self, visit: &mut Visit<'_>) -> Result<()> {
        let source = Source::new(self.context, self.kind.twin())?;
        match self.kind {
            Kind::Threads => self.by_threads(&source, visit),
            // `cuMemAlloc` allocates in the current context.
            _ => self.context.scoped(|| match self.kind {
                Kind::Live(_) => self.by_live_blocks(&source, visit),
                _ => self.by_bytes(&source, visit),
            })?,
        }
    }

    fn by_bytes(&self, source: &Source, visit: &mut Visit<'_>) -> Result<()> {
        let stream = self.context.stream()?;
        let run = |way, count| {
            let time = match (way, self.kind) {
                (Way::Curium, Kind::Buffer) => {
                    buffers(|| source.cache.clone(), &stream, self.value, count)?
                }
                (Way::Curium, Kind::BorrowingBuffer) => {
                    buffers(|| &source.cache, &stream, self.value, count)?
                }
                _ => pairs(source, way, &stream, self.value, count)?,
            };
            stream.synchronize()?;
            Ok(time)
        };
        visit(&mut self.measurement(Way::ALL.map(|way| self.count(way)), run))
    }

    /// Returns the time per pair of all threads together, each on its own stream.
    fn by_threads(&self, source: &Source, visit: &mut Visit<'_>) -> Result<()> {
        let threads = self.value;
        let streams = (0..threads)
            .map(|_| self.context.stream())
            .collect::<Result<Vec<_>, _>>()?;
        let run = |way, count: usize| {
            let each = count.div_ceil(threads);
            let slowest = crowd(source, way, &streams, each)?;
            self.context.synchronize()?;
            // The threads round the number of pairs up.
            Ok(slowest.mul_f64(count as f64 / (each * threads) as f64))
        };
        let measurement = self.measurement(Way::ALL.map(|way| self.count(way) * threads), run);
        visit(&mut measurement.with_note(|comparison| Ok(Some(self.rate(comparison)))))
    }

    /// Returns Curium's speedup on several threads over one.
    fn rate(&self, comparison: &Comparison) -> String {
        let time = comparison.curium.median();
        let alone = self.alone.get().unwrap_or(time * self.value as f64);
        self.alone.set(Some(alone));
        format!("{:.1} x Curium's single-thread rate", alone / time)
    }

    /// Returns the time of a deallocation and an allocation. Both ways make equally many, so that the fragmentation is comparable.
    fn by_live_blocks(&self, source: &Source, visit: &mut Visit<'_>) -> Result<()> {
        let (stream, pool) = (self.context.stream()?, Pool::current(self.context)?);
        pool.trim()?;
        let [mut c, mut curium] =
            [Way::C, Way::Curium].map(|way| Blocks::new(source, way, &stream));
        c.fill(self.value)?;
        curium.fill(self.value)?;
        let count = if self.kind.twin() == Twin::Plain {
            self.plan.plain_pairs
        } else {
            self.plan.churned
        };
        let run = |way, count| {
            if way == Way::C {
                c.churn(count)
            } else {
                curium.churn(count)
            }
        };
        let note = |comparison: &Comparison| {
            let frees = count * (comparison.c.count() + 1);
            self.scattering(source, &pool, frees).map(Some)
        };
        visit(&mut self.measurement([count; 2], run).with_note(note))?;
        drop((c, curium));
        Ok(stream.synchronize()?)
    }

    /// Describes the used part of the reserved memory and its fragmentation.
    fn scattering(&self, source: &Source, pool: &Pool<'_>, frees: usize) -> Result<String> {
        let cache = source.cache.statistics();
        let (live, reserved) = (cache.live_bytes() >> 20, cache.reserved_bytes >> 20);
        let scattered = 100.0 * cache.fragmentation();
        let mut note = format!(
            "after {frees} frees: Curium {live} of {reserved} MiB in use, {scattered:.0} % of the rest fragmented"
        );
        if self.kind.twin() == Twin::Pool {
            let (used, reserved) = pool.usage()?;
            note += &format!("; C {} of {} MiB", used >> 20, reserved >> 20);
        }
        Ok(note)
    }

    fn measurement<'a>(
        &self,
        batches: [usize; 2],
        run: impl FnMut(Way, usize) -> Result<Duration> + 'a,
    ) -> Measurement<'a> {
        let rounds = if self.kind.twin() == Twin::Plain {
            self.plan.plain_rounds()
        } else {
            self.plan.rounds
        };
        Measurement::new(self.kind.id(self.value), rounds, batches, run)
    }

    /// Returns the number of pairs per round.
    fn count(&self, way: Way) -> usize {
        match (way, self.kind) {
            (Way::C, Kind::Bytes(Twin::Plain)) => self.plan.plain_pairs,
            (Way::C, _) => self.plan.pool_pairs,
            (Way::Curium, Kind::Buffer | Kind::BorrowingBuffer) => {
                self.plan.cached_pairs.div_ceil(5)
            }
            (Way::Curium, _) => self.plan.cached_pairs,
        }
    }
}

fn pairs(
    source: &Source,
    way: Way,
    stream: &Stream,
    bytes: usize,
    count: usize,
) -> Result<Duration> {
    let begin = Instant::now();
    for _ in 0..count {
        let address = black_box(source.allocate(way, stream, black_box(bytes))?);
        source.free(way, stream, address, bytes)?;
    }
    Ok(begin.elapsed())
}

fn buffers<R: Resource>(
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

/// Returns the time of the slowest of several threads, which start together and make `count` pairs each.
fn crowd(source: &Source, way: Way, streams: &[Stream], count: usize) -> Result<Duration> {
    let barrier = Barrier::new(streams.len());
    let time = |stream| {
        let warm = pairs(source, way, stream, SHARED_BYTES, count.div_ceil(20));
        barrier.wait();
        warm.and(pairs(source, way, stream, SHARED_BYTES, count))
    };
    let times = thread::scope(|scope| {
        let workers: Vec<_> = streams
            .iter()
            .map(|stream| scope.spawn(|| time(stream)))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no thread panics"))
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(times.into_iter().max().unwrap_or_default())
}
