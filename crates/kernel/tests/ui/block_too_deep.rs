//! A block has at most 64 threads along z.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<1, 1, 128>) {}

fn main() {}
