//! Products of an index and the size of a tile do not wrap.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, y: PerBlockTile<u32, 1, { 1 << 32 }>) {}

fn main() {}
