//! A view does not outlive its buffer.

use curium_driver::Stream;
use curium_memory::{DeviceBuffer, DeviceSlice};

fn view(stream: &Stream) -> DeviceSlice<'_, u32> {
    let buffer = DeviceBuffer::zeroed(stream, 8).unwrap();
    buffer.as_slice()
}

fn main() {}
