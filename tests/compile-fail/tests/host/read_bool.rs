//! A kernel may write any byte, most of which are not a valid `bool`.

use curium_memory::DeviceBuffer;

fn read(buffer: &DeviceBuffer<bool>) -> Vec<bool> {
    buffer.to_vec().unwrap()
}

fn main() {}
