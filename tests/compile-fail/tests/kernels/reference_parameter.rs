//! Single values are passed by value.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: &f32) {}

fn main() {}
