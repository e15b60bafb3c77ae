//! Safe code does not create shared memory.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let mut values = [0_u32; 64];
    let _tile = Shared::new(&raw mut values);
}

fn main() {}
