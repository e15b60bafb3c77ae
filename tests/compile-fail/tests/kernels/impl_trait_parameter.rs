//! A kernel is not generic.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, f: impl Fn(f32) -> f32) {}

fn main() {}
