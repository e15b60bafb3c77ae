//! Declaring a kernel safe requires `unsafe`.

use curium_driver::{Kernel, SafeKernel};

fn declare(kernel: Kernel<(u32,)>) -> SafeKernel<(u32,)> {
    kernel.declare_safe()
}

fn main() {}
