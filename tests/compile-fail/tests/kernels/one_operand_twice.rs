//! One memory is not two operands.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: Shared<[u32; 64]>) {
    block.threads_with((&mut tile, &mut tile), |_, _| ());
}

fn main() {}
