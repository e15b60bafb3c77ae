//! A kernel declares no lifetimes.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel<'a>(t: Thread, x: &'a [u32]) {}

fn main() {}
