//! The attribute is for functions.

use curium_kernel::prelude::*;

#[kernel]
pub struct Kernel;

fn main() {}
