//! A slice does not outlive the launch.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: &'static [u32]) {}

fn main() {}
