//! Atomics of the scope of a block are not atomic for the other blocks of a cluster.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(cluster: Cluster<Block<64>, 2>, mut counters: Counters<4>) {
    counters.cluster_synced(&cluster, |counters| {
        cluster.threads(|t| counters.block(0)[0].fetch_add(t, 1, Relaxed));
    });
}

fn main() {}
