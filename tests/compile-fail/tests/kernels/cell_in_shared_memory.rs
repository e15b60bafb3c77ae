//! Shared memory holds no `Cell`.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, tile: Shared<[core::cell::Cell<u32>; 64]>) {}

fn main() {}
