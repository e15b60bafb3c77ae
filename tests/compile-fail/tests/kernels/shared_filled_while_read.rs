//! Shared memory is not written while all threads can read it.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: Shared<[u32; 64]>) {
    tile.synced(&block, |view| {
        tile.fill(&block, |_, i| view[i]);
    });
}

fn main() {}
