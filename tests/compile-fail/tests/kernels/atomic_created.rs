//! Safe code does not create an atomic number in local memory.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread) {
    let _counter: Atomic<u32> = Default::default();
}

fn main() {}
