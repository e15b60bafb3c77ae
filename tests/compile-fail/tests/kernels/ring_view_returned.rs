//! A stage of a ring is not read after its release.

use curium_kernel::prelude::*;

type Square = BoxTile<f32, 32, 32>;

#[kernel]
pub fn kernel(block: Block<64>, mut ring: TmaRing<Square>, x: TensorMap<Square>) {
    let mut kept = None;
    ring.pipeline(&block, 2, |_| x.at(0, 0), |_, tile| kept = Some(tile));
}

fn main() {}
