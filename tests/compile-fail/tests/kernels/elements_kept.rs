//! The elements of a thread are borrowed.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, mut y: PerThread<u32>) {
    let first = y.get(&t);
    let second = y.get(&t);
    if let (Some(first), Some(second)) = (first, second) {
        core::mem::swap(first, second);
    }
}

fn main() {}
