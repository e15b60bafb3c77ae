//! Code of a thread has no votes of the block.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let condition = Registers::new(true);
    block.threads(|_| block.any(&condition));
}

fn main() {}
