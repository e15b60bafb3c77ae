//! Floats have no atomic maximum.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: &[Atomic<f32>]) {
    x[0].fetch_max(&t, 1.0, Relaxed);
}

fn main() {}
