//! Two rows of an output at the same time, which could be the same row.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut y: PerBlockRow<u32>) {
    let first = y.nth_row(&block, 1);
    let second = y.nth_row(&block, 1);
    drop((first, second));
}

fn main() {}
