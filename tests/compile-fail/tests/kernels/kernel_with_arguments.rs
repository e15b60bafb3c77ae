//! The attribute has no arguments.

use curium_kernel::prelude::*;

#[kernel(256)]
pub fn kernel(t: Thread) {}

fn main() {}
