//! The elements of a lane in the code of its warp.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut y: PerWarpChunk<u32, 64>) {
    block.warps_with(&mut y, |_, mut y| {
        if let Some(y) = y.first() {
            *y = 1;
        }
    });
}

fn main() {}
