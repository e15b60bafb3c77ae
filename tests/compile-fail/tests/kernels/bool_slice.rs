//! Device memory can have any bytes, so a slice has no `bool`.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: &[bool]) {}

fn main() {}
