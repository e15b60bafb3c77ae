//! Padding has no value.

use curium_kernel::prelude::*;

#[derive(Clone, Copy, ByValue)]
#[repr(C)]
pub struct Mixed {
    small: u8,
    large: u32,
}

#[kernel]
pub fn kernel(t: Thread, x: Mixed) {}

fn main() {}
