//! A kernel requires a value for every parameter.

use curium_driver::{Kernel, LaunchConfig, SafeKernel, Stream};

fn launch(stream: &Stream, kernel: &SafeKernel<(u32, f32)>) {
    kernel.launch(stream, LaunchConfig::for_elements(8), (8_u32,)).unwrap();
}

fn unused(_: Kernel<()>) {}

fn main() {
    let _ = unused;
}
