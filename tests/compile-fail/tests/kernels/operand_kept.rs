//! An operand of a product is a tile that is not overwritten before the wait.

use curium_kernel::prelude::*;

type Square = SwizzledTile<u16, 64, 64>;

#[kernel]
pub fn kernel(block: Block<128>, mut tile: Shared<Square>) {
    let mut sums = Registers::new(Accumulators::<64>::ZERO);
    tile.synced(&block, |tile| {
        block.warp_groups_with(&mut sums, |warp_group, sums| {
            warp_group.multiply(sums, |products| products.add_bf16(tile, 0, tile));
        });
    });
}

fn main() {}
