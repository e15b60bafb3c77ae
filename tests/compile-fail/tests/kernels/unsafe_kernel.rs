//! A kernel is safe to call.

use curium_kernel::prelude::*;

#[kernel]
pub unsafe fn kernel(t: Thread) {}

fn main() {}
