//! Code of a lane does not capture the tile of its warp.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut y: PerWarpTile<f32, 16, 64>) {
    block.warps_with(&mut y, |warp, tile| {
        warp.lanes(|_| tile.first_row());
    });
}

fn main() {}
