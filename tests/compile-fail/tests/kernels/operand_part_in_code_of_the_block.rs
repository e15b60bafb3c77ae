//! The part of a thread is created by `unsafe` code only.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let index = block.threads(|t| t.index_in_block());
    let part: &usize = curium_kernel::ThreadOperand::<64, 1, 1>::thread_part(&index);
}

fn main() {}
