//! A cache of simulated memory, without a device.

use std::collections::HashMap;

use super::address_space::{AddressSpace, Gap, Part, part_bytes};
use super::heap::{Heap, Segment, StreamId};
use super::size_class::{BlockSize, GRANULE, SizeClass};
use super::thread_cache::ThreadCache;

/// A simulation of a [`CachingResource`](crate::CachingResource) without a device: addresses and
/// streams are numbers. It models a single thread and independent streams, in which the work before
/// each free has completed when memory is next searched.
#[derive(Debug)]
pub struct SimulatedCache {
    heap: Heap,
    addresses: AddressSpace<()>,
    /// The thread cache of each stream, as with a single thread.
    caches: HashMap<StreamId, ThreadCache>,
    /// The minimum size of a segment in bytes.
    step: u64,
    /// `true` if memory is available only to the stream that freed it.
    is_private: bool,
    reserved_bytes: u64,
}

/// A block allocated from a [`SimulatedCache`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct SimulatedBlock {
    address: u64,
    size: BlockSize,
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
            caches: HashMap::new(),
            step: (segment_bytes as u64)
                .next_multiple_of(GRANULE)
                .max(GRANULE),
            is_private: false,
            reserved_bytes: 0,
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
        let cached = if alignment == GRANULE {
            self.cache(stream).take(size)
        } else {
            None
        };
        let address = cached.unwrap_or_else(|| self.search(stream, size, alignment));
        SimulatedBlock { address, size }
    }

    /// Frees a block on the stream with this number.
    pub fn free(&mut self, stream: u64, block: SimulatedBlock) {
        let stream = StreamId(stream);
        let SimulatedBlock { address, size } = block;
        if self.cache(stream).insert(size, address) {
            return;
        }
        for spilled in self.cache(stream).take_older_half(size) {
            self.heap.free(stream, size, spilled);
        }
        self.heap.free(stream, size, address);
    }

    /// Returns the size of all segments in bytes.
    #[must_use]
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    fn search(&mut self, stream: StreamId, size: BlockSize, alignment: u64) -> u64 {
        if let Some(address) = self.take(stream, size, alignment) {
            return address;
        }
        for (stream, cache) in &mut self.caches {
            cache.drain(|size, address| self.heap.free(*stream, size, address));
        }
        if self.is_private {
            self.heap.coalesce_all();
        } else {
            for (stream, epoch) in self.heap.begin_epochs() {
                self.heap.release(stream, epoch);
            }
        }
        loop {
            if let Some(address) = self.take(stream, size, alignment) {
                return address;
            }
            self.grow(size.bytes() + alignment - GRANULE);
        }
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

    /// Adds segments, as the resource does in its address range: those that are free elsewhere
    /// first.
    fn grow(&mut self, bytes: u64) {
        let heap = &self.heap;
        let gap = self
            .addresses
            .gap(bytes, GRANULARITY.min(self.step), |end| {
                heap.free_before(end)
            });
        let Some(Gap {
            start,
            needed,
            available,
        }) = gap
        else {
            unreachable!("the range has more addresses than any log has memory");
        };
        let part = part_bytes(self.reserved_bytes);
        let moved = self.heap.remove_free_segments(needed, available, start);
        let mut added = Vec::new();
        let mut end = start;
        for segment in moved {
            self.addresses.remove(segment.start);
            added.push(segment.length);
            end += segment.length;
        }
        let new = (start + needed).saturating_sub(end);
        let mut new = if added.is_empty() {
            new.max(self.step.min(available))
        } else {
            new
        };
        self.reserved_bytes += new;
        while new > 0 {
            let length = new.min(part);
            added.push(length);
            new -= length;
        }
        let mut start = start;
        for length in added {
            self.addresses.insert(start, Part { length, memory: () });
            self.heap.add_segment(Segment { start, length });
            start += length;
        }
    }

    fn cache(&mut self, stream: StreamId) -> &mut ThreadCache {
        self.caches.entry(stream).or_default()
    }
}

impl SimulatedBlock {
    /// Returns the size of the block in bytes, which is at least the requested size.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.size.bytes()
    }
}
