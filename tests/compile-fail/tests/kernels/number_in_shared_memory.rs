//! Shared memory is an array or a tile.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, number: Shared<u32>) {}

fn main() {}
