//! Code of a block cannot keep a handle, which it could exchange in some blocks only.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(grid: Grid<Block<64>>, mut x: GridShared<u32>, mut y: GridShared<u32>) {
    let kept = grid.blocks_with((&mut x, &mut y), |_, (x, _)| x);
    x.synced(&grid, |x| x.len());
    let _ = kept;
}

fn main() {}
