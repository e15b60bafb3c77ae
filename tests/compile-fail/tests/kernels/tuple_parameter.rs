//! A tuple has no layout that host and device agree on.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: (u32, f32)) {}

fn main() {}
