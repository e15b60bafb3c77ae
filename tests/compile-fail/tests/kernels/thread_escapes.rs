//! A `Thread` does not leave its code.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let _t = block.threads(|t| t);
}

fn main() {}
