//! A shared view does not overlap a mutable one.

use curium_memory::DeviceBuffer;

fn copy(buffer: &mut DeviceBuffer<u32>) {
    let source = buffer.as_slice();
    buffer.copy_from_device(source).unwrap();
}

fn main() {}
