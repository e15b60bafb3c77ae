//! Simulation of the caching resource on a log, without a device.

use std::collections::HashMap;

use curium_memory::extend::{SimulatedBlock, SimulatedCache};

use super::{AllocationEvent, AllocationLog, EventKind};

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
    /// The number of times that memory was mapped so far, each of which takes a driver call.
    pub mappings: u64,
}

/// A cache and the live allocations of a log.
struct Simulation {
    cache: SimulatedCache,
    /// The live allocations by address in the log, with the requested sizes.
    live: HashMap<u64, (SimulatedBlock, usize)>,
    sample: CacheSample,
}

impl AllocationLog {
    /// Simulates a [`CachingResource`](curium_memory::CachingResource) with a minimum segment size
    /// of `segment_bytes` bytes, for a single thread and independent streams. Returns the state
    /// after each event.
    #[must_use]
    pub fn simulate_caching(&self, segment_bytes: usize) -> Vec<CacheSample> {
        let mut simulation = Simulation::new(SimulatedCache::new(segment_bytes));
        self.events
            .iter()
            .map(|event| simulation.play(event))
            .collect()
    }

    /// Estimates the memory that a [private pool](curium_memory::CachingResource::private_pool)
    /// with a minimum segment size of `segment_bytes` bytes reserves for a capture that allocates
    /// as this log does, from one thread. Several graphs that are captured into one pool need what
    /// the log of all of them needs.
    ///
    /// Record the log with an [`AllocationRecorder`](crate::AllocationRecorder) while the closure
    /// runs without a capture, or on the simulator. The estimate is greater than the peak of the
    /// memory in use, since the pool reuses memory only on the stream that freed it. It does not
    /// contain the memory that the driver uses for the graph itself.
    #[must_use]
    pub fn estimate_private_pool(&self, segment_bytes: usize) -> u64 {
        let mut simulation = Simulation::new(SimulatedCache::private_pool(segment_bytes));
        for event in &self.events {
            simulation.play(event);
        }
        simulation.sample.reserved_bytes
    }
}

impl Simulation {
    fn new(cache: SimulatedCache) -> Self {
        Self {
            cache,
            live: HashMap::new(),
            sample: CacheSample::default(),
        }
    }

    fn play(&mut self, event: &AllocationEvent) -> CacheSample {
        match event.kind {
            EventKind::Allocate if event.bytes != 0 => self.allocate(event),
            EventKind::Free => self.free(event.stream, event.address),
            // Segments belong to the resource, not to the user of it.
            _ => {}
        }
        self.sample.nanoseconds = event.nanoseconds;
        self.sample.reserved_bytes = self.cache.reserved_bytes();
        self.sample.mappings = self.cache.mappings();
        self.sample
    }

    fn allocate(&mut self, event: &AllocationEvent) {
        self.free(event.stream, event.address);
        let block = self
            .cache
            .allocate(event.stream, event.bytes, event.alignment);
        self.live.insert(event.address, (block, event.bytes));
        self.sample.live_bytes += event.bytes as u64;
        self.sample.block_bytes += block.bytes();
    }

    fn free(&mut self, stream: u64, address: u64) {
        let Some((block, bytes)) = self.live.remove(&address) else {
            return;
        };
        self.sample.live_bytes -= bytes as u64;
        self.sample.block_bytes -= block.bytes();
        self.cache.free(stream, block);
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
    /// A private pool keeps memory for the stream that freed it.
    #[test]
    fn private_pool_needs_memory_for_each_stream() -> Result<(), super::super::ParseLogError> {
        let mib: usize = 1 << 20;
        let mut text = String::from("curium allocation log 1\n");
        for stream in [1, 2, 1, 2] {
            for event in ["allocate", "free"] {
                text.push_str(&format!("1 {event} 0x1000 {} 256 {stream}\n", 8 * mib));
            }
        }
        let log: AllocationLog = text.parse()?;
        assert_eq!(log.estimate_private_pool(2 << 20), 16 * mib as u64);
        let samples = log.simulate_caching(2 << 20);
        let shared = samples.last().map(|sample| sample.reserved_bytes);
        assert_eq!(shared, Some(8 * mib as u64));
        Ok(())
    }
}
