//! Code of a thread does not write to a variable of the block.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let mut first = 0;
    block.threads(|t| first = t.index_in_block());
}

fn main() {}
