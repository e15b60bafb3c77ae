//! Fragments of a tile that is not in shared memory, of which `ldmatrix` cannot load.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<32>, mut tile: Shared<Tile<U32x4, 16, 2, 1>>) {
    let mut copy = tile.synced(&block, |tile| *tile);
    copy.fragments();
}

fn main() {}
