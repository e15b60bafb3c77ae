//! A kernel is not generic.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel<T: AnyBitPattern>(t: Thread, x: &[T]) {}

fn main() {}
