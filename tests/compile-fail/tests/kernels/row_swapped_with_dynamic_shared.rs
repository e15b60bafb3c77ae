//! A row of an output does not outlive its borrow inside of other memory.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, memory: DynamicShared<u32>, mut y: PerBlockRow<u32>) {
    if let Some(mut row) = y.row(&block) {
        let longer: &mut DynamicShared<u32> = &mut row;
        longer.fill(&block, |_, _| 0);
    }
}

fn main() {}
