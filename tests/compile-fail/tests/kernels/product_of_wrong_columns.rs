//! A product has 64, 128 or 256 columns.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(_block: Block<128>) {
    let _ = Registers::new(Accumulators::<96>::ZERO);
}

fn main() {}
