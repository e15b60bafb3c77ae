//! The index of a block differs between blocks, so code of the grid does not have it.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(grid: Grid<Block<64>>, mut x: GridShared<u32>) {
    if grid.index() == 0 {
        x.synced(&grid, |x| x.len());
    }
}

fn main() {}
