//! The values in registers are private.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let index = block.threads(|t| t.index_in_block());
    let _ = index.0;
}

fn main() {}
