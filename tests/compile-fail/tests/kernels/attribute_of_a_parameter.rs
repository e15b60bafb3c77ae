//! Host and device have the same parameters.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, #[cfg(target_arch = "nvptx64")] x: u32) {}

fn main() {}
