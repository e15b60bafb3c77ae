//! A kernel that reads floats does not accept integers.

use curium_driver::{Kernel, LaunchConfig, Stream};
use curium_memory::DeviceBuffer;

fn launch(stream: &Stream, sum: &Kernel<(&[f32], u32)>, buffer: &DeviceBuffer<u32>) {
    unsafe { sum.launch(stream, LaunchConfig::for_elements(8), (buffer, 8)) }.unwrap();
}

fn main() {}
