//! A slice does not outlive the launch.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: &[u32]) {
    let kept: &'static [u32] = x;
    let _ = kept;
}

fn main() {}
