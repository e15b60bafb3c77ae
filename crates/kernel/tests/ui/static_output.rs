//! An output does not outlive the launch.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, y: PerThread<'static, u32>) {}

fn main() {}
