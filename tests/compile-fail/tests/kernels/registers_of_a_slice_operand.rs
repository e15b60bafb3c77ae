//! An input is no operand.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, x: &[u32]) {
    block.threads_with(x, |_, _| ());
}

fn main() {}
