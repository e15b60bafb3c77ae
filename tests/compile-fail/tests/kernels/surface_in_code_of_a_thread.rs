//! A surface is written by code of the block.

use curium_kernel::Surface2D;
use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<32, 8>, image: Surface2D<f32>) {
    block.threads(|_| image.store(&block, |_, _| 0.0));
}

fn main() {}
