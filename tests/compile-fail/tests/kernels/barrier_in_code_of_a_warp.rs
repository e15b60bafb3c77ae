//! Code of a warp has no barrier of the block.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: Shared<[u32; 64]>) {
    block.warps(|_| tile.synced(&block, |_| ()));
}

fn main() {}
