//! Other blocks access a buffer too.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, counters: &[Atomic<u32, BlockScope>]) {}

fn main() {}
