//! The caller of a kernel guarantees that its accesses are valid.

use curium_driver::{Kernel, LaunchConfig, Stream};

fn launch(stream: &Stream, kernel: &Kernel<(u32,)>) {
    kernel.launch(stream, LaunchConfig::for_elements(8), (8,)).unwrap();
}

fn main() {}
