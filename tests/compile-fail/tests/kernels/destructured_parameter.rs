//! A parameter is a name.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, [x, y]: [f32; 2]) {}

fn main() {}
