//! A thread arrives once in a phase.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, barrier: Shared<Mbarrier>) {
    let barrier = barrier.init(&block);
    let first = barrier.arrive(&block, ());
    let second = barrier.arrive(&block, ());
    first.synced(&block, |()| ());
    second.synced(&block, |()| ());
}

fn main() {}
