//! Only `unsafe` code states that a library contains a kernel.

use curium_driver::Library;
use curium_kernel::host::{Function, Result};
use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: &[f32]) {}

pub fn load(library: &Library) -> Result<Function<kernel>> {
    Function::new(library, "kernel")
}

fn main() {}
