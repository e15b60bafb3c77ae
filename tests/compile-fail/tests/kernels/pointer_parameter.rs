//! A pointer is no parameter.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: *mut f32) {}

fn main() {}
