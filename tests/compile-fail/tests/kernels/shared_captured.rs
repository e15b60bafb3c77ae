//! Code of a thread does not capture shared memory.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: Shared<[u32; 64]>) {
    block.threads(|_| tile.fill(&block, |_, _| 0));
}

fn main() {}
