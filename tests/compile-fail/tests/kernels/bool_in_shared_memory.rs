//! Shared memory is not initialized, so it holds no `bool`.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, tile: Shared<[bool; 64]>) {}

fn main() {}
