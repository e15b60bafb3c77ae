//! A block has threads.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<0>) {}

fn main() {}
