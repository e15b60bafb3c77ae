//! A fragment of a tile that no barrier has completed.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<32>, mut tile: Shared<Tile<U32x4, 16, 2, 1>>) {
    tile.fill(&block, |_, _| U32x4::default());
    block.warps(|warp| tile.fragments().load(warp, 0, 0));
}

fn main() {}
