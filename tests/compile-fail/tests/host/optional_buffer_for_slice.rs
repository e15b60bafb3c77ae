//! A pointer parameter that is not declared optional is never null.

use curium_driver::{LaunchConfig, SafeKernel, Stream};
use curium_memory::DeviceBuffer;

fn launch(stream: &Stream, kernel: &SafeKernel<(&[u32],)>, x: Option<&DeviceBuffer<u32>>) {
    kernel.launch(stream, LaunchConfig::new(1, 1), (x,)).unwrap();
}

fn main() {}
