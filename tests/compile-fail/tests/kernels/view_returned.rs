//! The view of shared memory ends at the barrier, also if nothing writes the memory while the view is used.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: Shared<[u32; 64]>) {
    let view = tile.synced(&block, |view| view);
    block.threads(|t| view[63 - t.index_in_block()]);
    // A thread gets here while another reads.
    tile.fill(&block, |_, _| 0);
}

fn main() {}
