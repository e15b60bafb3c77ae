//! Device memory has no references.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: &[&'static u32]) {}

fn main() {}
