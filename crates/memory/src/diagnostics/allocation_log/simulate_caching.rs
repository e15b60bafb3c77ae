//! Simulating the caching resource on a log, without a device.

use std::collections::HashMap;

use super::{AllocationEvent, AllocationLog, EventKind};
use crate::cache::{Bins, Class, GRANULE, Generation, Owner, Rounded, Store};

/// The state of a simulated cache after an event.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CacheSample {
    /// The time in nanoseconds since the start of the log.
    pub nanoseconds: u64,
    /// The requested bytes in use.
    pub live_bytes: u64,
    /// The rounded bytes in use.
    pub block_bytes: u64,
    /// The bytes of all segments.
    pub reserved_bytes: u64,
}

/// A cache of simulated memory.
struct Imagined {
    store: Store,
    /// The free lists of each stream, as with a single thread.
    bins: HashMap<Owner, Bins>,
    /// The live allocations: simulated address and size.
    live: HashMap<u64, (u64, Rounded, usize)>,
    step: u64,
    sample: CacheSample,
}

impl AllocationLog {
    /// Simulates a [`CachingResource`](crate::CachingResource) with segments of at least `segment_bytes` bytes, for a single thread and
    /// independent streams. Returns its state after each event.
    #[must_use]
    pub fn simulate_caching(&self, segment_bytes: usize) -> Vec<CacheSample> {
        let mut imagined = Imagined {
            store: Store::default(),
            bins: HashMap::new(),
            live: HashMap::new(),
            step: (segment_bytes as u64).next_multiple_of(GRANULE).max(GRANULE),
            sample: CacheSample::default(),
        };
        self.events.iter().map(|event| imagined.play(event)).collect()
    }
}

impl Imagined {
    fn play(&mut self, event: &AllocationEvent) -> CacheSample {
        let owner = Owner(event.stream);
        match event.kind {
            EventKind::Allocate if event.bytes != 0 => self.allocate(owner, event),
            EventKind::Free => self.free(owner, event.address),
            // Segments belong to the resource.
            _ => {}
        }
        self.sample.nanoseconds = event.nanoseconds;
        self.sample
    }

    fn allocate(&mut self, owner: Owner, event: &AllocationEvent) {
        self.free(owner, event.address);
        let (size, alignment) = (Rounded::up(event.bytes), (event.alignment as u64).max(GRANULE));
        let held = (alignment == GRANULE).then(|| self.bins(owner).take(size)).flatten();
        let place = held.unwrap_or_else(|| self.search(owner, size, alignment));
        self.live.insert(event.address, (place, size, event.bytes));
        self.sample.live_bytes += event.bytes as u64;
        self.sample.block_bytes += size.bytes();
    }

    fn free(&mut self, owner: Owner, address: u64) {
        let Some((place, size, bytes)) = self.live.remove(&address) else { return };
        self.sample.live_bytes -= bytes as u64;
        self.sample.block_bytes -= size.bytes();
        if self.bins(owner).put(size, place) {
            return;
        }
        for spilled in self.bins(owner).overflow(size).addresses {
            self.store.give(owner, size, spilled);
        }
        self.store.give(owner, size, place);
    }

    fn search(&mut self, owner: Owner, size: Rounded, alignment: u64) -> u64 {
        if let Some(place) = self.take(owner, size, alignment) {
            return place;
        }
        for (owner, bins) in &mut self.bins {
            bins.drain(|size, place| self.store.give(*owner, size, place));
        }
        for (owner, generation) in self.store.mark_all() {
            self.store.promote(owner, generation);
        }
        loop {
            if let Some(place) = self.take(owner, size, alignment) {
                return place;
            }
            self.grow(size.bytes() + alignment - GRANULE);
        }
    }

    fn take(&mut self, owner: Owner, size: Rounded, alignment: u64) -> Option<u64> {
        match size {
            Rounded::Class(class) if alignment == GRANULE => self.take_block(owner, class),
            _ => self.store.take_range(owner, size.bytes(), alignment),
        }
    }

    fn take_block(&mut self, owner: Owner, class: Class) -> Option<u64> {
        let mut blocks = Vec::new();
        self.store.take(owner, class, Bins::capacity(class).div_ceil(2), &mut blocks);
        let place = blocks.pop()?;
        let bins = self.bins(owner);
        let rest: Vec<u64> = blocks.into_iter().filter(|block| !bins.put(Rounded::Class(class), *block)).collect();
        rest.into_iter().for_each(|block| self.store.give(owner, Rounded::Class(class), block));
        Some(place)
    }

    /// Extends the only segment at its end.
    fn grow(&mut self, bytes: u64) {
        // The first granule is skipped, so no address is 0.
        let end = GRANULE + self.sample.reserved_bytes;
        let before = self.store.heap().ending_at(end).map_or(0, |range| range.length);
        let length = bytes.saturating_sub(before).max(self.step);
        self.store.heap_mut().free(end, length, Owner::ALL, Generation::default());
        self.sample.reserved_bytes += length;
    }

    fn bins(&mut self, owner: Owner) -> &mut Bins {
        self.bins.entry(owner).or_insert_with(Bins::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imagined_cache_grows_only_when_nothing_free_fits() {
        let mib = 1 << 20;
        let mut text = String::from("curium allocation log 1\n");
        for round in 0..3 {
            for block in 1..=8 {
                text.push_str(&format!("{round} allocate {:#x} {mib} 256 1\n", block * mib));
            }
            for block in 1..=8 {
                text.push_str(&format!("{round} free {:#x} {mib} 256 1\n", block * mib));
            }
            text.push_str(&format!("{round} allocate 0x1 {} 256 2\n{round} free 0x1 {0} 256 2\n", 8 * mib));
        }
        let log: AllocationLog = text.parse().expect("the log is well formed");
        let samples = log.simulate_caching(2 << 20);
        let peak = samples.iter().map(|sample| sample.live_bytes).max();
        assert_eq!(peak, Some(8 * mib));
        assert!(samples.iter().all(|sample| sample.live_bytes <= sample.block_bytes));
        assert_eq!(samples.last().map(|sample| (sample.live_bytes, sample.reserved_bytes)), Some((0, 8 * mib)));
    }
}
