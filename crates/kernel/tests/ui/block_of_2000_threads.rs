//! A block has at most 1024 threads.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<2000>) {}

fn main() {}
