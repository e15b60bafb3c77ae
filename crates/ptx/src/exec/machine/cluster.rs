//! A cluster: blocks that access each other's shared memory and share a barrier.
//!
//! One worker runs all blocks of a cluster, so nothing here is contended. The atomics only permit
//! sharing.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use crate::exec::memory::window::BLOCK_STRIDE;
use crate::exec::memory::{HostBytes, SharedMemory};

/// The state that the blocks of a cluster share.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    /// The shared memory of each block, by its rank.
    members: OnceLock<Vec<Arc<SharedMemory>>>,
    /// The number of live threads.
    live: AtomicU32,
    arrived: AtomicU32,
    phase: AtomicU32,
}

impl Cluster {
    /// Creates a cluster of blocks with these shared memories and `threads` threads in total.
    pub(crate) fn new(members: Vec<Arc<SharedMemory>>, threads: u32) -> Self {
        Self {
            members: OnceLock::from(members),
            live: AtomicU32::new(threads),
            ..Self::default()
        }
    }

    /// Resets a cluster of a single block.
    pub(crate) fn restart(&self, threads: u32) {
        self.live.store(threads, Ordering::Relaxed);
        self.arrived.store(0, Ordering::Relaxed);
        self.phase.store(0, Ordering::Relaxed);
    }

    /// Returns host memory of `bytes` bytes at an address that names a block.
    #[cold]
    pub(crate) fn host_bytes(&self, address: u64, bytes: u64) -> Option<HostBytes> {
        self.member(address)?
            .host_bytes(address % BLOCK_STRIDE, bytes)
    }

    /// Returns the shared memory of the block that an address names.
    pub(crate) fn member(&self, address: u64) -> Option<&SharedMemory> {
        let rank = usize::try_from(address / BLOCK_STRIDE)
            .ok()?
            .checked_sub(1)?;
        self.members.get()?.get(rank).map(|member| &**member)
    }

    /// Returns `true` if the cluster has one block.
    #[inline]
    pub(crate) fn is_single_block(&self) -> bool {
        self.members.get().is_some_and(|members| members.len() == 1)
    }

    /// Counts threads as arrived at the barrier, and returns the phase that they wait for.
    pub(crate) fn arrive(&self, threads: u32) -> u32 {
        let phase = self.phase.load(Ordering::Relaxed);
        self.arrived.fetch_add(threads, Ordering::Relaxed);
        self.settle();
        phase
    }

    /// Returns `true` if the phase has completed.
    pub(crate) fn is_over(&self, phase: u32) -> bool {
        self.phase.load(Ordering::Relaxed) != phase
    }

    /// Removes ended threads from the barrier.
    pub(crate) fn exit(&self, threads: u32) {
        let live = self.live.load(Ordering::Relaxed);
        self.live
            .store(live.saturating_sub(threads), Ordering::Relaxed);
        self.settle();
    }

    /// Returns the current phase.
    pub(crate) fn phase(&self) -> u32 {
        self.phase.load(Ordering::Relaxed)
    }

    fn settle(&self) {
        let arrived = self.arrived.load(Ordering::Relaxed);
        if arrived == 0 || arrived < self.live.load(Ordering::Relaxed) {
            return;
        }
        self.arrived.store(0, Ordering::Relaxed);
        self.phase.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the address of a shared variable in the block with a rank.
#[inline(always)]
pub(crate) fn address_in(address: u64, rank: u32) -> u64 {
    address % BLOCK_STRIDE + (u64::from(rank) + 1) * BLOCK_STRIDE
}

/// Returns the rank of the block that a shared-memory address names, or `default` if it names none.
#[inline(always)]
pub(crate) fn block_rank(address: u64, default: u32) -> u32 {
    match address / BLOCK_STRIDE {
        0 => default,
        number => number as u32 - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_the_block_that_they_are_in() {
        assert_eq!(block_rank(0x1234, 3), 3);
        let address = address_in(address_in(0x1234, 7), 2);
        assert_eq!(
            (block_rank(address, 3), address % BLOCK_STRIDE),
            (2, 0x1234)
        );
        let members = (0..3)
            .map(|_| Arc::new(SharedMemory::new(0x2000)))
            .collect();
        let cluster = Cluster::new(members, 96);
        assert!(cluster.host_bytes(address, 4).is_some());
        assert!(cluster.host_bytes(address_in(0x1234, 3), 4).is_none());
        assert!(cluster.host_bytes(0x1234, 4).is_none());
    }

    #[test]
    fn cluster_barrier_ignores_ended_threads() {
        let cluster = Cluster::new(Vec::new(), 64);
        let phase = cluster.arrive(32);
        assert!(!cluster.is_over(phase));
        cluster.exit(32);
        assert!(cluster.is_over(phase));
    }
}
