//! Safe code does not create a `Block`.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread) {
    let _block = Block::<64>::new();
}

fn main() {}
