//! A chunk has elements.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, y: PerThreadChunk<u32, 0>) {}

fn main() {}
