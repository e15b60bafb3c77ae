//! A barrier in the code of a thread, which other threads need not reach.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    block.threads(|t| {
        if t.index_in_block() == 0 {
            block.sync();
        }
    });
}

fn main() {}
