//! Two values for the same elements.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut y: PerBlockChunk<u32, 128>) {
    let mut first = y.chunk(&block);
    let mut second = y.chunk(&block);
    first.fill(&block, |_, i| i as u32);
    second.fill(&block, |_, i| i as u32);
}

fn main() {}
