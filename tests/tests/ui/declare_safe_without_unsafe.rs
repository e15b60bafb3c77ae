//! Vouching for a kernel is what makes launching it safe.

use curium_driver::{Kernel, SafeKernel};

fn declare(kernel: Kernel<(u32,)>) -> SafeKernel<(u32,)> {
    kernel.declare_safe()
}

fn main() {}
