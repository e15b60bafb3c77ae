//! Uninitialized memory has arbitrary bytes, most of which are not a valid `bool`.

use curium_driver::Stream;
use curium_memory::DeviceBuffer;

fn allocate(stream: &Stream) -> DeviceBuffer<bool> {
    DeviceBuffer::uninit(stream, 8).unwrap()
}

fn main() {}
