//! Code of a thread does not capture a mutable reference.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let mut first = 0;
    let reference = &mut first;
    block.threads(|t| *reference = t.index_in_block());
}

fn main() {}
