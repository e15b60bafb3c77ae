//! A buffer is not freed while it is borrowed as an argument.

use curium_driver::{LaunchConfig, SafeKernel, Stream};
use curium_memory::DeviceBuffer;

fn launch(stream: &Stream, kernel: &SafeKernel<(&[u32],)>, buffer: DeviceBuffer<u32>) {
    let arguments = (&buffer,);
    drop(buffer);
    kernel.launch(stream, LaunchConfig::for_elements(8), arguments).unwrap();
}

fn main() {}
