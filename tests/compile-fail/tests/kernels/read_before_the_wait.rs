//! Memory is not read before all threads have arrived.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, barrier: Shared<Mbarrier>, mut tile: Shared<[u32; 64]>) {
    let barrier = barrier.init(&block);
    let arrived = barrier.arrive(&block, &mut tile);
    block.threads_with(&mut tile, |_, _| ());
    arrived.synced(&block, |tile| block.threads(|t| tile[63 - t.index_in_block()]));
}

fn main() {}
