//! A kernel does not receive one buffer both for reading and for writing.

use curium_driver::{LaunchConfig, SafeKernel, Stream};
use curium_memory::DeviceBuffer;

fn launch(stream: &Stream, kernel: &SafeKernel<(&[f32], &mut [f32])>, buffer: &mut DeviceBuffer<f32>) {
    kernel.launch(stream, LaunchConfig::for_elements(8), (&*buffer, &mut *buffer)).unwrap();
}

fn main() {}
