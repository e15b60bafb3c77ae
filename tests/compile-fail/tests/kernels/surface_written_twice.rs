//! A surface is written once.

use curium_kernel::Surface2D;
use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<32, 8>, image: Surface2D<f32>) {
    image.store(&block, |_, _| 0.0);
    image.update(&block, |_, _, old| old + 1.0);
}

fn main() {}
