//! The first parameter is the scope.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel() {}

fn main() {}
