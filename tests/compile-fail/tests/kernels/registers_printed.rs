//! The values in registers have no `Debug`.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let index = block.threads(|t| t.index_in_block());
    let _ = core::format_args!("{index:?}");
}

fn main() {}
