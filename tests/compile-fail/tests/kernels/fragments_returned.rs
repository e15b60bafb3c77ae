//! Fragments of a tile after the barrier that ends its shared view.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<32>, mut tile: Shared<Tile<U32x4, 16, 2, 1>>) {
    tile.fill(&block, |_, _| U32x4::default());
    let fragments = tile.fragments().synced(&block, |tile| tile);
    tile.fill(&block, |_, _| U32x4::default());
    block.warps(|warp| fragments.load(warp, 0, 0));
}

fn main() {}
