//! The state of a block that its warps share.

use std::sync::Arc;

use super::barrier::{Barrier, MAX_WARPGROUPS, NAMED_BARRIERS, Wait};
use super::cluster::Cluster;
use super::tensor_memory::TensorMemory;
use crate::exec::check::first_stores::FirstStores;
use crate::exec::check::shadow::Shadow;
use crate::exec::memory::window::BLOCK_STRIDE;
use crate::exec::memory::{HostBytes, SharedMemory};

/// The state that the warps of a block share.
#[derive(Debug)]
pub(crate) struct BlockState {
    /// Index in the grid.
    pub(crate) index: [u32; 3],
    /// The linear index in the grid.
    pub(crate) number: u64,
    pub(crate) shared: Arc<SharedMemory>,
    /// The accesses to shared memory, if races are checked.
    pub(crate) shadow: Option<Shadow>,
    /// The stores that filled shared memory, if uninitialized reads are checked.
    pub(crate) first_stores: FirstStores,
    /// The block's cluster and its rank in it.
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) rank: u32,
    /// The named barriers, and one for each warpgroup.
    pub(crate) barriers: [Barrier; NAMED_BARRIERS + MAX_WARPGROUPS],
    /// The tensor memory, if the block has allocated any.
    pub(crate) tensor_memory: Option<Box<TensorMemory>>,
    /// The number of live threads.
    pub(crate) live: u32,
}

impl BlockState {
    /// Returns host memory of `bytes` bytes at a shared-memory address of the block or of another
    /// block of its cluster.
    #[inline(always)]
    pub(crate) fn shared_bytes(&self, address: u64, bytes: u64) -> Option<HostBytes> {
        if address < BLOCK_STRIDE {
            self.shared.host_bytes(address, bytes)
        } else {
            self.cluster.host_bytes(address, bytes)
        }
    }

    /// Returns the shared memory that contains an address: the block's own, or that of another
    /// block of its cluster.
    pub(crate) fn shared_memory(&self, address: u64) -> Option<&SharedMemory> {
        if address < BLOCK_STRIDE {
            Some(&self.shared)
        } else {
            self.cluster.member(address)
        }
    }

    /// Counts threads as arrived at a barrier, and returns the phase that they wait for.
    pub(crate) fn arrive(&mut self, wait: Wait, threads: u32) -> u32 {
        let phase = self.barriers[wait.barrier].arrive(wait, threads, self.live);
        if self.barriers[wait.barrier].result(phase).is_some() {
            self.order();
        }
        phase
    }

    /// Orders earlier accesses before later ones.
    pub(crate) fn order(&mut self) {
        if let Some(shadow) = &mut self.shadow {
            shadow.advance();
        }
    }

    /// Removes ended threads from the barriers.
    pub(crate) fn exit(&mut self, threads: u32) {
        self.live -= threads;
        self.cluster.exit(threads);
        let mut is_over = false;
        for barrier in &mut self.barriers {
            is_over |= barrier.settle(self.live);
        }
        if is_over {
            self.order();
        }
    }
}
