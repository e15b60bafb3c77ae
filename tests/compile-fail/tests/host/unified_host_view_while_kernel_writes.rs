//! The host does not access managed memory while it is the mutable argument of a kernel.

use curium_driver::{LaunchConfig, SafeKernel, Stream};
use curium_memory::UnifiedBuffer;

fn launch(stream: &Stream, kernel: &SafeKernel<(&mut [u32],)>, mut buffer: UnifiedBuffer<u32>) -> u32 {
    let values = buffer.host_view().unwrap();
    kernel.launch(stream, LaunchConfig::for_elements(8), (&mut buffer,)).unwrap();
    values[0]
}

fn main() {}
