//! A barrier of a warp in the code of a lane, which other lanes need not reach.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    block.warps(|warp| {
        warp.lanes(|lane| {
            if lane.index() == 0 {
                warp.sync();
            }
        });
    });
}

fn main() {}
