//! The spelling of a type chooses no meaning: an alias of shared memory is not an argument.

use curium_kernel::prelude::*;

type Memory = Shared<[u32; 64]>;

#[kernel]
pub fn kernel(block: Block<64>, tile: Memory) {}

fn main() {}
