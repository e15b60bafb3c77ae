//! A cluster barrier that some blocks only would reach.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(cluster: Cluster<Block<64>, 2>, mut tile: Shared<[u32; 64]>) {
    cluster.blocks_with(&mut tile, |block, tile| {
        if block.index_in_cluster() == 0 {
            tile.cluster_synced(&cluster, |tile| tile.block(1)[0]);
        }
    });
}

fn main() {}
