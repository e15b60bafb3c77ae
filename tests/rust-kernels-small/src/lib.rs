//! A kernel for tests that load it for each operation, which takes seconds for large PTX.

#![no_std]
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "the kernel has a comment, and its launcher is private to the tests"
)]

use curium_kernel::prelude::*;

/// The index of each element.
#[kernel]
pub fn indices(t: Thread, mut y: PerThread<u32>) {
    if let Some(y) = y.get(&t) {
        *y = t.index() as u32;
    }
}

#[cfg(not(target_arch = "nvptx64"))]
curium_kernel::include_kernels!("kernels");
