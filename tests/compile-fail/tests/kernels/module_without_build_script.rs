//! A build script compiles each module.
use curium_kernel::include_kernels;

include_kernels!("nowhere");

fn main() {}
