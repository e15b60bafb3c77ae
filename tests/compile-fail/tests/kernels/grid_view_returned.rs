//! The view of memory of a grid ends at the second barrier.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(grid: Grid<Block<64>>, mut x: GridShared<u32>) {
    let view = x.synced(&grid, |x| x);
    grid.threads(|t| view[t.index_in_grid()]);
    x.fill(&grid, |_, _| 0);
}

fn main() {}
