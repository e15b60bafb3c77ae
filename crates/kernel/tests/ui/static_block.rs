//! A block does not outlive the launch.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<'static, 64>) {}

fn main() {}
