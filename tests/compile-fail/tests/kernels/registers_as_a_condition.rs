//! Code of a block does not branch on a value of each thread.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: Shared<[u32; 64]>) {
    let is_first = block.threads(|t| t.index_in_block() == 0);
    if is_first {
        tile.synced(&block, |_| ());
    }
}

fn main() {}
