//! Memory that nobody wrote holds any bytes, and most are no `bool`.

use curium_driver::Stream;
use curium_memory::DeviceBuffer;

fn allocate(stream: &Stream) -> DeviceBuffer<bool> {
    DeviceBuffer::uninit(stream, 8).unwrap()
}

fn main() {}
