//! A tile is not used while a box is copied to it.

use curium_kernel::prelude::*;

type Square = BoxTile<f32, 32, 32>;

#[kernel]
pub fn kernel(
    block: Block<64>,
    barrier: Shared<Mbarrier>,
    mut tile: Shared<Square>,
    x: TensorMap<Square>,
) {
    let barrier = barrier.init(&block);
    let _ = barrier.load(
        &block,
        &mut tile,
        x.at(0, 0),
        || tile.fill(&block, |_, _| 0.0),
        |_| (),
    );
}

fn main() {}
