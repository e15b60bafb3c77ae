//! The views of several memories end at the barrier.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut first: Shared<[u32; 64]>, mut second: Counters<64>) {
    let (first_view, counters) = (&mut first, &mut second).synced(&block, |views| views);
    block.threads(|t| {
        counters[t.index_in_block()].fetch_add(t, first_view[0], Relaxed);
    });
    second.fill(&block, |_, _| 0);
}

fn main() {}
