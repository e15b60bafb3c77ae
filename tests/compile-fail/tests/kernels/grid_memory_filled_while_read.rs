//! Memory of a grid is not written between the barriers.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(grid: Grid<Block<64>>, mut x: GridShared<u32>) {
    x.synced(&grid, |view| {
        x.fill(&grid, |_, i| view[i]);
    });
}

fn main() {}
