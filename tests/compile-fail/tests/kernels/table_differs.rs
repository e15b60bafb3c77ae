//! Host and device agree on the parameters.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: &[f32]) {}

curium_kernel::__kernels! {
    unsafe module: crate,
    images: [],
    kernels: [
        { name: kernel, path: [kernel], table: [1, 0, 0, 0] },
    ],
}

fn main() {}
