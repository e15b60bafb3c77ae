//! The scope is the first parameter.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, block: Block<64>) {}

fn main() {}
