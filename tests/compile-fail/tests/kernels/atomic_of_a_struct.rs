//! Only numbers are atomic.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, counters: &[Atomic<[u32; 2]>]) {}

fn main() {}
