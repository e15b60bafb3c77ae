//! A kernel is not a method.

use curium_kernel::prelude::*;

pub struct Program;

impl Program {
    #[kernel]
    pub fn kernel(&self, t: Thread) {}
}

fn main() {}
