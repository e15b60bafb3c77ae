//! An output holds no `Cell`.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, y: PerThread<core::cell::Cell<u32>>) {}

fn main() {}
