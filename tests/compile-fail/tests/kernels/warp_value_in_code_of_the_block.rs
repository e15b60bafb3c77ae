//! Code of a block does not read a value of each warp.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let index = block.warps(|warp| warp.index());
    let _ = index.0;
}

fn main() {}
