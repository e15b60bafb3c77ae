//! A grid barrier that some blocks only would reach.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(grid: Grid<Block<64>>, mut x: GridShared<u32>) {
    grid.blocks_with(&mut x, |block, x| {
        if block.index() == 0 {
            x.synced(&grid, |x| x.len());
        }
    });
}

fn main() {}
