//! Simulation of the caching resource on a log, without a device.

use std::collections::HashMap;

use super::{AllocationEvent, AllocationLog, EventKind};
use crate::cache::{BlockSize, GRANULE, Heap, SizeClass, StreamId, ThreadCache};

/// The state of a simulated cache after an event.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CacheSample {
    /// The time in nanoseconds since the start of the log.
    pub nanoseconds: u64,
    /// The sum of the requested sizes of the live allocations, in bytes.
    pub live_bytes: u64,
    /// The sum of the block sizes of the live allocations, in bytes.
    pub block_bytes: u64,
    /// The size of all segments in bytes.
    pub reserved_bytes: u64,
}

/// A cache of simulated memory.
struct SimulatedCache {
    heap: Heap,
    /// The thread cache of each stream, as with a single thread.
    caches: HashMap<StreamId, ThreadCache>,
    /// The live allocations: simulated address and size.
    live: HashMap<u64, (u64, BlockSize, usize)>,
    step: u64,
    sample: CacheSample,
}

impl AllocationLog {
    /// Simulates a [`CachingResource`](crate::CachingResource) with a minimum segment size of `segment_bytes` bytes,
    /// for a single thread and independent streams. Returns the state after each event.
    #[must_use]
    pub fn simulate_caching(&self, segment_bytes: usize) -> Vec<CacheSample> {
        let mut simulated = SimulatedCache {
            heap: Heap::default(),
            caches: HashMap::new(),
            live: HashMap::new(),
            step: (segment_bytes as u64)
                .next_multiple_of(GRANULE)
                .max(GRANULE),
            sample: CacheSample::default(),
        };
        self.events
            .iter()
            .map(|event| simulated.play(event))
            .collect()
    }
}

impl SimulatedCache {
    fn play(&mut self, event: &AllocationEvent) -> CacheSample {
        let stream = StreamId(event.stream);
        match event.kind {
            EventKind::Allocate if event.bytes != 0 => self.allocate(stream, event),
            EventKind::Free => self.free(stream, event.address),
            // Segments belong to the resource, not to the user of it.
            _ => {}
        }
        self.sample.nanoseconds = event.nanoseconds;
        self.sample
    }

    fn allocate(&mut self, stream: StreamId, event: &AllocationEvent) {
        self.free(stream, event.address);
        let size = BlockSize::from_bytes(event.bytes);
        let alignment = (event.alignment as u64).max(GRANULE);
        let cached = if alignment == GRANULE {
            self.cache(stream).take(size)
        } else {
            None
        };
        let address = cached.unwrap_or_else(|| self.search(stream, size, alignment));
        self.live
            .insert(event.address, (address, size, event.bytes));
        self.sample.live_bytes += event.bytes as u64;
        self.sample.block_bytes += size.bytes();
    }

    fn free(&mut self, stream: StreamId, address: u64) {
        let Some((block, size, bytes)) = self.live.remove(&address) else {
            return;
        };
        self.sample.live_bytes -= bytes as u64;
        self.sample.block_bytes -= size.bytes();
        if self.cache(stream).insert(size, block) {
            return;
        }
        for spilled in self.cache(stream).take_older_half(size) {
            self.heap.free(stream, size, spilled);
        }
        self.heap.free(stream, size, block);
    }

    fn search(&mut self, stream: StreamId, size: BlockSize, alignment: u64) -> u64 {
        if let Some(address) = self.take(stream, size, alignment) {
            return address;
        }
        for (stream, cache) in &mut self.caches {
            cache.drain(|size, address| self.heap.free(*stream, size, address));
        }
        for (stream, epoch) in self.heap.begin_epochs() {
            self.heap.release(stream, epoch);
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

    /// Extends the only segment at its end.
    fn grow(&mut self, bytes: u64) {
        // The first granule is skipped, so that no address is 0.
        let end = GRANULE + self.sample.reserved_bytes;
        let before = self.heap.free_before(end);
        let length = bytes.saturating_sub(before).max(self.step);
        self.heap.free_range(StreamId::ANY, end, length);
        self.sample.reserved_bytes += length;
    }

    fn cache(&mut self, stream: StreamId) -> &mut ThreadCache {
        self.caches.entry(stream).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_cache_grows_only_when_nothing_free_fits() {
        let mib = 1 << 20;
        let mut text = String::from("curium allocation log 1\n");
        for round in 0..3 {
            for block in 1..=8 {
                text.push_str(&format!(
                    "{round} allocate {:#x} {mib} 256 1\n",
                    block * mib
                ));
            }
            for block in 1..=8 {
                text.push_str(&format!("{round} free {:#x} {mib} 256 1\n", block * mib));
            }
            text.push_str(&format!(
                "{round} allocate 0x1 {} 256 2\n{round} free 0x1 {0} 256 2\n",
                8 * mib
            ));
        }
        let log: AllocationLog = text.parse().expect("the log is well formed");
        let samples = log.simulate_caching(2 << 20);
        let peak = samples.iter().map(|sample| sample.live_bytes).max();
        assert_eq!(peak, Some(8 * mib));
        assert!(
            samples
                .iter()
                .all(|sample| sample.live_bytes <= sample.block_bytes)
        );
        assert_eq!(
            samples
                .last()
                .map(|sample| (sample.live_bytes, sample.reserved_bytes)),
            Some((0, 8 * mib))
        );
    }
}
