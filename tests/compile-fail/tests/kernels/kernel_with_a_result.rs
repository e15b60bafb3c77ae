//! A kernel writes its results to outputs.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: &[f32]) -> f32 {
    x[t.index()]
}

fn main() {}
