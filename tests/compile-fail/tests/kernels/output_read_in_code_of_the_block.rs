//! Code of a block does not read an output.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut y: PerThread<u32>) {
    let _ = y.get(&block);
}

fn main() {}
