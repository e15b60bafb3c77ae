//! The memory of other blocks is accessible between two cluster barriers only.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(cluster: Cluster<Block<64>, 2>, mut tile: Shared<[u32; 64]>) {
    let other = tile.cluster_synced(&cluster, |tile| tile.block(1));
    cluster.threads(|t| other[t.index_in_block()]);
}

fn main() {}
