//! Millions of random allocations, deallocations and accesses, after which nothing may be leaked.

use curium_driver::{Context, DevicePointer, Error, Result, Stream};
use curium_memory::{
    CachingOptions, CachingResource, DeviceBuffer, LimitedResource, Reclaiming, Resource,
};

/// The configuration of a soak test.
#[derive(Clone, Copy, Debug)]
pub struct Soak {
    /// The total number of operations of all threads.
    pub operations: u64,
    /// The number of threads.
    pub threads: u64,
    /// The seed of the random operations.
    pub seed: u64,
}

/// The statistics of a soak test.
#[derive(Clone, Copy, Debug, Default)]
pub struct Soaked {
    /// Allocations from the cache.
    pub allocations: u64,
    /// Allocations that failed, some of them by design.
    pub refused: u64,
    /// Buffers that were created, written and read back.
    pub buffers: u64,
    /// Streams that were created and dropped.
    pub streams: u64,
    /// The private resident memory of the process in bytes after a tenth of the operations, if the
    /// system reports it.
    pub resident_early: Option<u64>,
    /// The private resident memory in bytes at the end.
    pub resident_late: Option<u64>,
}

type Pool = Reclaiming<LimitedResource<CachingResource>>;

/// The limit of allocated bytes: an allocation beyond it fails.
const LIMIT: usize = 128 << 20;
/// The maximum number of blocks that a thread holds.
const MOST: usize = 400;

struct Worker<'a> {
    context: &'a Context,
    pool: &'a Pool,
    streams: Vec<Stream>,
    blocks: Vec<Block>,
    numbers: u64,
    soaked: Soaked,
}

struct Block {
    pointer: DevicePointer<u8>,
    bytes: usize,
    stream: Stream,
}

impl Soak {
    /// Runs the soak test in `context`, and frees everything.
    ///
    /// # Errors
    ///
    /// Returns the first unexpected error.
    ///
    /// # Panics
    ///
    /// Panics if memory has unexpected content, or if the resource has lost or leaked memory.
    pub fn run(&self, context: &Context) -> Result<Soaked> {
        let options = CachingOptions::new()
            .with_cache(true)
            .with_segment_bytes(4 << 20);
        let pool = Reclaiming::new(LimitedResource::new(
            CachingResource::with_options(context, &options)?,
            LIMIT,
        ));
        let early = Self {
            operations: self.operations / 10,
            ..*self
        }
        .run_on(context, &pool)?;
        give_back(context, &pool)?;
        let resident_early = resident();
        let late_soak = Self {
            operations: self.operations - self.operations / 10,
            seed: !self.seed,
            ..*self
        };
        let late = late_soak.run_on(context, &pool)?;
        let statistics = pool.inner().inner().statistics();
        assert_eq!(
            (statistics.live_allocations(), pool.inner().used()),
            (0, 0),
            "{statistics:?}"
        );
        assert_eq!(
            statistics.free_bytes, statistics.reserved_bytes,
            "{statistics:?}"
        );
        give_back(context, &pool)?;
        Ok(Soaked {
            resident_early,
            resident_late: resident(),
            ..early.and(late)
        })
    }

    fn run_on(&self, context: &Context, pool: &Pool) -> Result<Soaked> {
        std::thread::scope(|scope| {
            let start = |thread| {
                let mut worker = Worker {
                    context,
                    pool,
                    streams: Vec::new(),
                    blocks: Vec::new(),
                    numbers: self.seed.wrapping_add(thread << 32),
                    soaked: Soaked::default(),
                };
                scope.spawn(move || worker.run(self.operations / self.threads))
            };
            let threads: Vec<_> = (0..self.threads).map(start).collect();
            let mut sum = Soaked::default();
            for thread in threads {
                sum = sum.and(thread.join().expect("no thread panics")?);
            }
            Ok(sum)
        })
    }
}

impl Soaked {
    fn and(self, other: Self) -> Self {
        Self {
            allocations: self.allocations + other.allocations,
            refused: self.refused + other.refused,
            buffers: self.buffers + other.buffers,
            streams: self.streams + other.streams,
            ..self
        }
    }
}

impl Worker<'_> {
    fn run(&mut self, operations: u64) -> Result<Soaked> {
        self.streams = (0..3)
            .map(|_| self.context.stream())
            .collect::<Result<_>>()?;
        for _ in 0..operations {
            match self.below(20_000) {
                0 => self.replace_stream()?,
                1 => self.pool.trim(&self.streams[0], 0)?,
                2..20 => self.use_buffer()?,
                20..10_100 => self.allocate()?,
                _ => self.free_one()?,
            }
        }
        while !self.blocks.is_empty() {
            self.free_one()?;
        }
        Ok(self.soaked)
    }

    fn allocate(&mut self) -> Result<()> {
        if self.blocks.len() == MOST {
            return self.free_one();
        }
        let magnitude = 1 + self.below(21);
        let bytes = (1 + self.below(1 << magnitude)) as usize;
        let stream = self.any_stream();
        match self.pool.allocate(&stream, bytes, 256) {
            Ok(pointer) => {
                self.soaked.allocations += 1;
                self.blocks.push(Block {
                    pointer,
                    bytes,
                    stream,
                });
                Ok(())
            }
            Err(error @ Error::OutOfMemory(_)) if error.code().is_none() => {
                self.soaked.refused += 1;
                (0..MOST / 4).try_for_each(|_| self.free_one())
            }
            Err(error) => Err(error),
        }
    }

    fn free_one(&mut self) -> Result<()> {
        if self.blocks.is_empty() {
            return Ok(());
        }
        let index = self.below(self.blocks.len() as u64) as usize;
        let block = self.blocks.swap_remove(index);
        // SAFETY: the block was allocated from this resource with this size and alignment, and is
        // not in use.
        unsafe {
            self.pool
                .deallocate(&block.stream, block.pointer, block.bytes, 256)
        }
    }

    /// Creates a buffer, writes it on one stream and reads it on another.
    fn use_buffer(&mut self) -> Result<()> {
        let values = [self.below(1 << 40); 100];
        let source = DeviceBuffer::from_slice(&self.any_stream(), &values)?;
        let mut target = DeviceBuffer::zeroed(&self.any_stream(), values.len())?;
        target.copy_from_device(&source)?;
        drop(source);
        assert_eq!(target.to_vec()?, values);
        self.soaked.buffers += 2;
        Ok(())
    }

    fn replace_stream(&mut self) -> Result<()> {
        let index = self.below(self.streams.len() as u64) as usize;
        self.streams[index] = self.context.stream()?;
        self.soaked.streams += 1;
        Ok(())
    }

    fn any_stream(&mut self) -> Stream {
        let index = self.below(self.streams.len() as u64) as usize;
        self.streams[index].clone()
    }

    fn below(&mut self, end: u64) -> u64 {
        self.numbers = self.numbers.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.numbers ^ (self.numbers >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// Returns all memory, none of which is in use, to the driver.
fn give_back(context: &Context, pool: &Pool) -> Result<()> {
    let stream = context.stream()?;
    pool.synchronize(&stream)?;
    pool.trim(&stream, 0)?;
    let statistics = pool.inner().inner().statistics();
    assert_eq!(
        (statistics.reserved_bytes, statistics.free_bytes),
        (0, 0),
        "{statistics:?}"
    );
    Ok(())
}

/// Returns the private resident memory of the process in bytes, if the system reports it, without
/// the file-backed pages that the simulator uses for small blocks of device memory.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim()
        .strip_suffix(" kB")?
        .trim()
        .parse::<u64>()
        .ok()
        .map(|kib| kib << 10)
}
