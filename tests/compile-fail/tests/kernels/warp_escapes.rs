//! A `Warp` does not leave its code.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let _warp = block.warps(|warp| warp);
}

fn main() {}
