//! Code of a block does not compare values of threads.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let index = block.threads(|t| t.index_in_block());
    let _ = index == Registers::new(0);
}

fn main() {}
