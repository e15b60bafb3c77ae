//! Code of a thread starts no code of threads.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    block.threads(|_| block.threads(|t| t.index()));
}

fn main() {}
