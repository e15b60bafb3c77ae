//! A `Lane` does not leave its code.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    block.warps(|warp| {
        let _lane = warp.lanes(|lane| lane);
    });
}

fn main() {}
