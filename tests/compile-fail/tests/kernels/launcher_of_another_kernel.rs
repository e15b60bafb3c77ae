//! The name of a function in the PTX is that of the kernel, also if a macro of the crate is called like one of `core`.

macro_rules! stringify {
    ($name:ident) => {
        "second"
    };
}

macro_rules! assert {
    ($($condition:tt)*) => {
        ()
    };
}

macro_rules! include_str {
    ($($path:tt)*) => {
        ".version 7.8"
    };
}

use curium_kernel::prelude::*;

#[kernel]
pub fn first(t: Thread, mut y: PerThread<u8>) {
    let _ = y.get(&t);
}

// As the build script writes it, with the table of another kernel.
curium_kernel::__kernels! {
    unsafe module: self,
    images: [
        { target: "sm_80", major: 8, minor: 0, suffix: "", ptx: "no such file" },
    ],
    kernels: [
        { name: first, path: [first], table: [1, 0, 0, 0] },
    ],
}

fn main() {}
