//! A row of an output does not outlive its borrow inside of other memory.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut memory: DynamicShared<u32>, mut y: PerBlockRow<u32>) {
    if let Some(mut row) = y.row(&block) {
        core::mem::swap(&mut memory, &mut row);
    }
}

fn main() {}
