//! The view of shared memory ends at the barrier.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: Shared<[u32; 64]>) {
    let view = tile.synced(&block, |view| view);
    tile.fill(&block, |_, _| 0);
    block.threads(|t| view[t.index_in_block()]);
}

fn main() {}
