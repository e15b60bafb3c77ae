//! A thread waits once for a phase.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, barrier: Shared<Mbarrier>) {
    let barrier = barrier.init(&block);
    let arrived = barrier.arrive(&block, ());
    arrived.synced(&block, |()| ());
    arrived.synced(&block, |()| ());
}

fn main() {}
