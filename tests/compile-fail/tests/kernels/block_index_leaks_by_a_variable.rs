//! What differs between blocks does not leave their code by a variable.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(grid: Grid<Block<64>>, mut x: GridShared<u32>) {
    let mut index = 0;
    grid.blocks(|block| index = block.index());
    if index == 0 {
        x.synced(&grid, |x| x.len());
    }
}

fn main() {}
