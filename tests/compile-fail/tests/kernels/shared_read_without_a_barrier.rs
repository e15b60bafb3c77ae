//! Code of threads reads shared memory only between barriers.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: Shared<[u32; 64]>) {
    tile.fill(&block, |t, _| t.index_in_block() as u32);
    block.threads(|t| tile[63 - t.index_in_block()]);
}

fn main() {}
