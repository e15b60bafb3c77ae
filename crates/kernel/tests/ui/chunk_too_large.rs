//! Products of an index and the size of a chunk do not wrap.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, y: PerThreadChunk<u32, { 1 << 62 }>) {}

fn main() {}
