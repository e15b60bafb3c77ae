//! Rows of different lifetimes are not exchanged.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>, mut y: PerBlockRow<u32>, mut z: PerBlockRow<u32>) {
    let Some(mut first) = y.row(&block) else { return };
    {
        let mut z = z;
        let Some(mut second) = z.row(&block) else { return };
        core::mem::swap(&mut first, &mut second);
    }
    block.threads_with(&mut first, |_, _| ());
}

fn main() {}
