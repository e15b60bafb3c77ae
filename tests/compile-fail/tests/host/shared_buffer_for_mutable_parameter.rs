//! A kernel that writes through a pointer requires exclusive access to the buffer.

use curium_driver::{Kernel, LaunchConfig, Stream};
use curium_memory::DeviceBuffer;

fn launch(stream: &Stream, fill: &Kernel<(&mut [u32], u32)>, buffer: &DeviceBuffer<u32>) {
    unsafe { fill.launch(stream, LaunchConfig::for_elements(8), (buffer, 8)) }.unwrap();
}

fn main() {}
