//! Only the build script states that PTX was compiled from the kernels.

use curium_kernel::prelude::*;

#[kernel]
pub fn kernel(t: Thread, x: &[f32]) {}

curium_kernel::__kernels! {
    safe module: crate,
    images: [
        { target: "sm_80", major: 8, minor: 0, suffix: "", ptx: "" },
    ],
    kernels: [
        { name: kernel, path: [kernel], table: [] },
    ],
}

fn main() {}
