//! Code of a warp does not branch on a value of each lane.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    block.warps(|warp| {
        let is_first = warp.lanes(|lane| lane.index() == 0);
        if is_first {
            warp.any(&is_first);
        }
    });
}

fn main() {}
