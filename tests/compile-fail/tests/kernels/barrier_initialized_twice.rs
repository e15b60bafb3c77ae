//! A barrier is initialized once.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, barrier: Shared<Mbarrier>) {
    let _first = barrier.init(&block);
    let _second = barrier.init(&block);
}

fn main() {}
