//! Clusters of blocks, and distributed shared memory.

use curium_kernel::prelude::*;

/// The sum of the elements of each cluster of two blocks, which both blocks write.
#[kernel]
pub fn cluster_sums(
    cluster: Cluster<Block<128>, 2>,
    mut scratch: Scratch<u32>,
    mut partial: Shared<[u32; 1]>,
    x: &[u32],
    mut y: PerBlock<u32>,
) {
    cluster.blocks_with((&mut scratch, &mut partial), |block, (scratch, partial)| {
        let own = block.threads(|t| x.get(t.index_in_grid()).copied().unwrap_or(0));
        let sum = block.sum(&own, scratch);
        partial.fill(block, |_, _| sum);
    });
    partial.cluster_synced(&cluster, |partial| {
        let sum = partial.blocks().map(|partial| partial[0]).sum();
        cluster.blocks_with(&mut y, |block, y| y.set(block, sum));
    });
}

/// A histogram of bytes, whose bins are divided between the blocks of a cluster.
#[kernel]
pub fn cluster_histogram(
    cluster: Cluster<Block<64>, 4>,
    mut bins: Shared<[Atomic<u32, ClusterScope>; 64]>,
    data: &[u8],
    total: &[Atomic<u32>],
) {
    cluster.blocks_with(&mut bins, |block, bins| bins.fill(block, |_, _| 0));
    bins.cluster_synced(&cluster, |bins| {
        cluster.threads(|t| {
            for i in t.grid_stride(data.len()) {
                let bin = usize::from(data[i]);
                bins.block(bin / 64)[bin % 64].fetch_add(t, 1, Relaxed);
            }
        });
    });
    cluster.blocks_with(&mut bins, |block, bins| {
        let first = block.index_in_cluster() * 64;
        block.threads_with(bins, |t, bins| {
            for (i, count) in bins {
                total[first + i].fetch_add(t, *count.get_mut(), Relaxed);
            }
        });
    });
}

/// Rotates the elements of each cluster of four blocks by one block: each thread reads the memory
/// of the next block.
#[kernel]
pub fn rotate(
    cluster: Cluster<Block<32>, 4>,
    mut tile: Shared<[u32; 32]>,
    x: &[u32],
    mut y: PerThread<u32>,
) {
    cluster.blocks_with(&mut tile, |block, tile| {
        let first = block.index() * 32;
        tile.fill(block, |_, i| x[first + i]);
    });
    tile.cluster_synced(&cluster, |tile| {
        cluster.blocks_with(&mut y, |block, y| {
            let next = tile.block((block.index_in_cluster() + 1) % 4);
            block.threads_with(y, |t, y| {
                if let Some(y) = y.first() {
                    *y = next[t.index_in_block()];
                }
            });
        });
    });
}
