//! Code of the grid cannot read the values of blocks.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(grid: Grid<Block<64>>, mut x: GridShared<u32>) {
    let is_first = grid.blocks(|block| block.index() == 0);
    if is_first {
        x.synced(&grid, |x| x.len());
    }
}

fn main() {}
