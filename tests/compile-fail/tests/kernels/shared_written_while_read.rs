//! The view of shared memory is read-only.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: Shared<[u32; 64]>) {
    tile.synced(&block, |tile| {
        block.threads(|t| tile[0] = t.index_in_block() as u32);
    });
}

fn main() {}
