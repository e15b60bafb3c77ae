//! Code of a lane has no shuffles.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    block.warps(|warp| {
        let values = warp.lanes(|lane| lane.index());
        warp.lanes(|_| warp.sum(&values));
    });
}

fn main() {}
