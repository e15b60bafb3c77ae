//! A kernel launches its own code.

use curium_kernel::prelude::*;

#[kernel]
pub fn first(t: Thread, x: &[f32]) {}

#[kernel]
pub fn second(t: Thread, mut x: PerThread<f64>) {}

pub fn confuse(first: &first) -> second {
    second {
        __function: first.__function.clone(),
    }
}

fn main() {}
