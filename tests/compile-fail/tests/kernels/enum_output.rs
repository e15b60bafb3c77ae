//! Device memory can have any bytes, so an output has no enum.

use curium_kernel::prelude::*;

#[derive(Clone, Copy)]
pub enum Color {
    Red,
}

#[kernel]
pub fn kernel(t: Thread, y: PerThread<Color>) {}

fn main() {}
