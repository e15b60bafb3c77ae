//! Neighbors in a halo tile are read between barriers.

use curium_kernel::prelude::*;
use curium_kernel::{Border, HaloTile};

#[kernel]
pub fn kernel(block: Block<32, 8>, mut tile: Shared<HaloTile<f32, 8, 32, 1>>, x: Matrix<f32>) {
    tile.fill_from(&block, &x, (0, 0), Border::Clamp);
    block.threads(|t| tile[(t.y() as isize - 1, t.x() as isize)]);
}

fn main() {}
