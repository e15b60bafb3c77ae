//! Safe code does not create a `Thread`.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(block: Block<64>) {
    let _t = curium_kernel::Thread::new::<64, 1, 1>();
}

fn main() {}
