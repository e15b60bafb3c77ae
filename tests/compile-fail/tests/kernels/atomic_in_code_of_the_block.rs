//! An atomic load differs between threads, so code of a block has none.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: Shared<[u32; 64]>, counter: &[Atomic<u32>]) {
    if counter[0].load(&block, Relaxed) == 0 {
        tile.synced(&block, |_| ());
    }
}

fn main() {}
