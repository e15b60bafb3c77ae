//! Every thread would have the same `&mut`.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, y: &mut [f32]) {
    y[t.index()] = 1.0;
}

fn main() {}
