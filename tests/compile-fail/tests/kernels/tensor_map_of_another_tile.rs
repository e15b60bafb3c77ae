//! A box has the size of the tile to which it is copied.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(
    block: Block<64>,
    mut ring: TmaRing<BoxTile<f32, 32, 32>>,
    x: TensorMap<BoxTile<f32, 16, 32>>,
) {
    ring.pipeline(&block, 1, |_| x.at(0, 0), |_, _| ());
}

fn main() {}
