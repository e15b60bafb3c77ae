//! The view of shared memory ends at the barrier, also in a variable that the code captures.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut tile: DynamicShared<u32>, mut row: PerBlockRow<u32>) {
    let mut kept = None;
    tile.synced(&block, |view| kept = Some(view));
    block.threads(|t| kept.map(|view| view[t.index_in_block()]));
    if let Some(mut row) = row.row(&block) {
        let mut kept = None;
        row.synced(&block, |view| kept = Some(view));
        block.threads(|t| kept.map(|view| view[t.index_in_block()]));
    }
}

fn main() {}
