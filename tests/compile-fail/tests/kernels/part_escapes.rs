//! The elements of a thread are not kept across a barrier.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: Shared<[u32; 64]>) {
    let part = block.threads_with(&mut tile, |_, elements| elements.first());
    tile.synced(&block, |_| ());
    block.threads_with(&part, |_, _| ());
}

fn main() {}
