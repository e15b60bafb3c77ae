//! Code of a thread does not share a `Cell` with code of the block.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let first = core::cell::Cell::new(0);
    block.threads(|t| first.set(t.index_in_block()));
}

fn main() {}
