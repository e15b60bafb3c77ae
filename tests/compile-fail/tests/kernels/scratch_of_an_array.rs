//! Reductions are of numbers.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, scratch: Scratch<[u32; 2]>) {}

fn main() {}
