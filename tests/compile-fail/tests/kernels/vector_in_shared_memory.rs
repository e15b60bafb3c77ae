//! Shared memory holds no types that need `Drop`.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, lists: Shared<[Vec<u32>; 64]>) {}

fn main() {}
