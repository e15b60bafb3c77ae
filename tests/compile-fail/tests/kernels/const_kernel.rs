//! A kernel is not `const`.

use curium_kernel::prelude::*;

#[kernel]
pub const fn kernel(t: Thread) {}

fn main() {}
