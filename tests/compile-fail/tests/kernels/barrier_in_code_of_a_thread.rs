//! Code of a thread has no barrier.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut scratch: Scratch<u32>) {
    let one = Registers::new(1_u32);
    block.threads(|t| {
        if t.index_in_block() == 0 {
            block.sum(&one, &mut scratch);
        }
    });
}

fn main() {}
