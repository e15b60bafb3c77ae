//! An output holds no reference.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, y: PerBlock<Option<&'static u32>>) {}

fn main() {}
