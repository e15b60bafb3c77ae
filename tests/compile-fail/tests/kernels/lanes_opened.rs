//! The values of lanes are private.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    block.warps(|warp| {
        let values = warp.lanes(|lane| lane.index());
        values.0
    });
}

fn main() {}
