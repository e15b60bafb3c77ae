//! Code of threads has no products.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<128>) {
    let mut sums = Registers::new(Accumulators::<64>::ZERO);
    block.threads(|_| {
        block.warp_groups_with(&mut sums, |_, _| ());
    });
}

fn main() {}
