//! A kernel may leave any byte behind, and most are no `bool`.

use curium_memory::DeviceBuffer;

fn read(buffer: &DeviceBuffer<bool>) -> Vec<bool> {
    buffer.to_vec().unwrap()
}

fn main() {}
