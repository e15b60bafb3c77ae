//! Clocks and the multiprocessor belong to code of threads.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut y: PerThread<u32>) {
    let number = block.threads(|t| t.multiprocessor());
    if number == 0 {
        block.threads_with(&mut y, |_, _| ());
    }
}

fn main() {}
