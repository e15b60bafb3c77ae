//! Only code of threads reads accumulators.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<128>) {
    let mut sums = Registers::new(Accumulators::<64>::ZERO);
    block.warp_groups_with(&mut sums, |_, sums| {
        sums.values[0] = 1.0;
    });
}

fn main() {}
