//! A parameter has a type.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: _) {}

fn main() {}
