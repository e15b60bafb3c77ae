//! All dynamic shared memory of a kernel is the same memory.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, x: DynamicShared<u32>, y: DynamicShared<f32>) {}

fn main() {}
