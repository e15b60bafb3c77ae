//! Registers with one value hold no `Block`.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let _registers = Registers::new(&block);
}

fn main() {}
