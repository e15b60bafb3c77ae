//! A cache of simulated memory, without a device.

use std::collections::HashMap;

use super::address_space::{AddressSpace, Gap, Part, part_bytes};
use super::heap::{Heap, Segment, StreamId};
use super::size_class::{BlockSize, GRANULE, SizeClass};
use super::stitching::Stitching;
use super::thread_cache::ThreadCache;

/// A simulation of a [`CachingResource`](crate::CachingResource) without a device: addresses and
/// streams are numbers. It models a single thread and independent streams, in which the work before
/// each free has completed when memory is next searched.
#[derive(Debug)]
pub struct SimulatedCache {
    heap: Heap,
    addresses: AddressSpace<()>,
    stitching: Stitching,
    /// The addresses from here on are in no stitched range.
    stitched_end: u64,
    /// The thread cache of each stream, as with a single thread.
    caches: HashMap<StreamId, ThreadCache>,
    /// The minimum size of a segment in bytes.
    step: u64,
    /// `true` if memory is available only to the stream that freed it.
    is_private: bool,
    reserved_bytes: u64,
    /// The number of times that a part was mapped.
    mappings: u64,
}

/// A block allocated from a [`SimulatedCache`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct SimulatedBlock {
    address: u64,
    size: BlockSize,
    /// The requested size.
    requested: usize,
}

/// The granularity of memory, as on most devices.
const GRANULARITY: u64 = 2 << 20;

/// The addresses of a simulated cache. The first granule is skipped, so that no address is 0.
const ADDRESSES: Segment = Segment {
    start: GRANULE,
    length: 1 << 60,
};

impl SimulatedCache {
    /// Creates a cache without segments, whose segments have at least `segment_bytes` bytes.
    #[must_use]
    pub fn new(segment_bytes: usize) -> Self {
        Self {
            heap: Heap::new(true),
            addresses: AddressSpace::new(ADDRESSES),
            stitching: Stitching::default(),
            stitched_end: ADDRESSES.end(),
            caches: HashMap::new(),
            step: (segment_bytes as u64)
                .next_multiple_of(GRANULE)
                .max(GRANULE),
            is_private: false,
            reserved_bytes: 0,
            mappings: 0,
        }
    }

    /// Creates a simulation of a [private pool](crate::CachingResource::private_pool), in which
    /// memory is available only to the stream that freed it.
    #[must_use]
    pub fn private_pool(segment_bytes: usize) -> Self {
        Self {
            is_private: true,
            ..Self::new(segment_bytes)
        }
    }

    /// Allocates a block of at least `bytes` bytes on the stream with this number. The memory grows
    /// if no free memory fits.
    pub fn allocate(&mut self, stream: u64, bytes: usize, alignment: usize) -> SimulatedBlock {
        let stream = StreamId(stream);
        let size = BlockSize::from_bytes(bytes.max(1));
        let alignment = (alignment as u64).max(GRANULE);
        if self.cache(stream).is_idle() {
            self.gather();
        }
        let cache = self.cache(stream);
        cache.record_allocation(bytes);
        let cached = if alignment == GRANULE {
            cache.take(size)
        } else {
            None
        };
        let address = cached.unwrap_or_else(|| self.search(stream, size, alignment));
        SimulatedBlock {
            address,
            size,
            requested: bytes,
        }
    }

    /// Frees a block on the stream with this number.
    pub fn free(&mut self, stream: u64, block: SimulatedBlock) {
        let stream = StreamId(stream);
        let SimulatedBlock {
            address,
            size,
            requested,
        } = block;
        let cache = self.cache(stream);
        cache.record_free(requested);
        if cache.insert(size, address) {
            return;
        }
        let mut surplus = cache.take_older_half(size);
        if !cache.insert(size, address) {
            surplus.push(address);
        }
        for spilled in surplus {
            self.heap.free(stream, size, spilled);
        }
    }

    /// Returns the size of all segments in bytes.
    #[must_use]
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    /// Returns the number of times that memory was mapped, each of which takes a driver call.
    #[must_use]
    pub fn mappings(&self) -> u64 {
        self.mappings
    }

    fn search(&mut self, stream: StreamId, size: BlockSize, alignment: u64) -> u64 {
        if let Some(address) = self.take(stream, size, alignment) {
            return address;
        }
        self.heap.coalesce_blocks(stream);
        if let Some(address) = self.take(stream, size, alignment) {
            return address;
        }
        self.gather();
        loop {
            if let Some(address) = self.take(stream, size, alignment) {
                return address;
            }
            self.provide(size.bytes() + alignment - GRANULE);
        }
    }

    /// Coalesces all free memory. That of every stream is available to every other, unless the
    /// pool is private.
    fn gather(&mut self) {
        let idle_limit = self.stitching.idle_limit(self.reserved_bytes);
        for (stream, cache) in &mut self.caches {
            cache.drain(|size, address| self.heap.free(*stream, size, address));
            cache.set_idle_limit(idle_limit);
        }
        if self.is_private {
            self.heap.coalesce_all();
            return;
        }
        for (stream, epoch) in self.heap.begin_epochs() {
            self.heap.release(stream, epoch);
        }
        self.stitching.recall(&mut self.heap, |_, _| {});
    }

    fn take(&mut self, stream: StreamId, size: BlockSize, alignment: u64) -> Option<u64> {
        match size {
            BlockSize::Class(class) if alignment == GRANULE => self.take_block(stream, class),
            _ => self.heap.take_range(stream, size.bytes(), alignment),
        }
    }

    fn take_block(&mut self, stream: StreamId, class: SizeClass) -> Option<u64> {
        let mut blocks = Vec::new();
        self.heap.take_blocks(
            stream,
            class,
            ThreadCache::capacity(class).div_ceil(2),
            &mut blocks,
        );
        let address = blocks.pop()?;
        let cache = self.cache(stream);
        blocks.retain(|block| !cache.insert(BlockSize::Class(class), *block));
        for block in blocks {
            self.heap.free(stream, BlockSize::Class(class), block);
        }
        Some(address)
    }

    /// Adds free memory as the resource does: parts that are stitched together, otherwise new ones.
    fn provide(&mut self, bytes: u64) {
        if self.stitching.reuse(&mut self.heap, bytes, |_, _| {}) {
            return;
        }
        if let Some(parts) = self.heap.remove_free_segments(bytes) {
            let length = parts.iter().map(|part| part.length).sum();
            while self
                .stitching
                .take_excess(length, self.reserved_bytes)
                .is_some()
            {}
            let start = self.stitched_end;
            self.stitched_end += length + GRANULARITY;
            self.mappings += parts.len() as u64;
            self.stitching
                .insert(&mut self.heap, start, &parts, |_, _| {});
            return;
        }
        self.grow(bytes);
    }

    fn grow(&mut self, bytes: u64) {
        let granularity = GRANULARITY.min(self.step);
        let (gap, free_bytes) = self.addresses.growth(bytes, granularity, &self.heap);
        let Some(Gap {
            mut start,
            needed,
            available,
        }) = gap
        else {
            unreachable!("the range has more addresses than any log has memory");
        };
        let part = part_bytes(self.reserved_bytes);
        let mut new = if free_bytes == 0 {
            needed.max(self.step.min(available))
        } else {
            needed
        };
        self.reserved_bytes += new;
        while new > 0 {
            let length = new.min(part);
            self.addresses.insert(start, Part { length, memory: () });
            self.heap.add_segment(Segment { start, length });
            self.mappings += 1;
            start += length;
            new -= length;
        }
    }

    fn cache(&mut self, stream: StreamId) -> &mut ThreadCache {
        let idle_limit = self.stitching.idle_limit(self.reserved_bytes);
        self.caches
            .entry(stream)
            .or_insert_with(|| ThreadCache::with_idle_limit(idle_limit))
    }
}

impl SimulatedBlock {
    /// Returns the size of the block in bytes, which is at least the requested size.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.size.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use super::*;

    const MIB: usize = 1 << 20;

    /// A random program: allocations of 1 byte to 96 MiB on three streams, in one of which memory
    /// lives long.
    struct Program {
        cache: SimulatedCache,
        live: VecDeque<(u64, SimulatedBlock)>,
        numbers: fastrand::Rng,
    }

    impl Program {
        fn new(cache: SimulatedCache, seed: u64) -> Self {
            Self {
                cache,
                live: VecDeque::new(),
                numbers: fastrand::Rng::with_seed(seed),
            }
        }

        fn step(&mut self) {
            let stream = self.numbers.u64(1..=3);
            if self.live.len() < 30 && self.numbers.u8(..8) < 5 {
                let bytes = match self.numbers.u8(..4) {
                    0 => self.numbers.usize(1..MIB),
                    1 => self.numbers.usize(MIB..8 * MIB),
                    _ => self.numbers.usize(8 * MIB..96 * MIB),
                };
                let block = self.cache.allocate(stream, bytes, 1);
                self.live.push_back((stream, block));
            } else if !self.live.is_empty() {
                let index = self.numbers.usize(..self.live.len());
                if let Some((stream, block)) = self.live.swap_remove_back(index) {
                    self.cache.free(stream, block);
                }
            }
        }

        fn end(&mut self) {
            for (stream, block) in self.live.drain(..) {
                self.cache.free(stream, block);
            }
        }

        /// Asserts that no two blocks in use have physical memory in common.
        fn assert_disjoint(&self) {
            let mut used: BTreeMap<u64, u64> = BTreeMap::new();
            for (_, block) in &self.live {
                let end = block.address + block.bytes();
                let mut start = block.address;
                while start < end {
                    let page_end = (start - ADDRESSES.start + 1).next_multiple_of(GRANULARITY)
                        + ADDRESSES.start;
                    let piece_end = page_end.min(end);
                    let home = self.cache.stitching.home(start);
                    let length = piece_end - start;
                    let before = used.range(..home + length).next_back();
                    assert!(
                        before.is_none_or(|(_, before_end)| *before_end <= home),
                        "{start:#x} of a block at {:#x} is also in use elsewhere",
                        block.address
                    );
                    used.insert(home, home + length);
                    start = piece_end;
                }
            }
        }
    }

    #[test]
    fn blocks_share_no_physical_memory() {
        let (seeds, steps) = if cfg!(miri) { (1, 60) } else { (20, 1000) };
        let mut mappings = 0;
        for seed in 0..seeds {
            let mut program = Program::new(SimulatedCache::new(2 * MIB), seed);
            for _ in 0..steps {
                program.step();
                program.assert_disjoint();
            }
            program.end();
            program.cache.gather();
            let parts = program.cache.reserved_bytes();
            assert_eq!(program.cache.heap.free_bytes(), parts, "seed {seed}");
            assert_eq!(program.cache.heap.longest(StreamId::ANY), parts);
            mappings += program.cache.mappings();
        }
        assert!(cfg!(miri) || mappings > 10_000, "{mappings}");
    }

    /// A program that repeats itself finds all of its ranges after few repetitions, also beside
    /// memory that stays in use.
    #[test]
    fn repetitions_map_nothing() {
        let (seeds, steps) = if cfg!(miri) { (1, 60) } else { (20, 600) };
        for seed in 0..seeds {
            let mut cache = SimulatedCache::new(32 * MIB);
            for megabytes in 0..seed as usize {
                let _weights = cache.allocate(1, (megabytes + 1) * MIB, 1);
            }
            let mut program = Program::new(cache, seed);
            for repetition in 0..10 {
                program.numbers.seed(seed);
                let before = program.cache.mappings();
                (0..steps).for_each(|_| program.step());
                program.end();
                let mapped = program.cache.mappings() - before;
                assert!(repetition < 7 || mapped == 0, "seed {seed}: {mapped}");
            }
        }
    }
}
