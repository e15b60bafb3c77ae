//! Shared memory holds no references.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, tile: Shared<[&'static u32; 64]>) {}

fn main() {}
