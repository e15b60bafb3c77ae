//! A string is no parameter.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, name: &str) {}

fn main() {}
