//! Code of a thread receives its elements and does not capture the output.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut y: PerThread<u32>) {
    block.threads(|t| y.get(&t).copied());
}

fn main() {}
