//! A row of an output is borrowed.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut y: PerBlockRow<u32>) {
    let first = y.row(&block);
    let second = y.row(&block);
    drop((first, second));
}

fn main() {}
