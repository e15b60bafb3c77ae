//! The first parameter is the scope.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(x: &[f32], t: Thread) {}

fn main() {}
