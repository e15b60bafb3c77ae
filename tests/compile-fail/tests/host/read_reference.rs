//! Arbitrary bytes are not a valid reference.

use curium_memory::DeviceBuffer;

fn read(buffer: &DeviceBuffer<&'static u32>) -> Vec<&'static u32> {
    buffer.to_vec().unwrap()
}

fn main() {}
