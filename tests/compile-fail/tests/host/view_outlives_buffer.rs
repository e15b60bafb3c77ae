//! A view does not outlive its buffer.

use curium_driver::Stream;
use curium_memory::{DeviceBuffer, DeviceSlice, DeviceView};

fn slice(stream: &Stream) -> &DeviceSlice<u32> {
    let buffer = DeviceBuffer::zeroed(stream, 8).unwrap();
    buffer.as_slice()
}

fn view(stream: &Stream) -> DeviceView<'_, u32> {
    let buffer = DeviceBuffer::zeroed(stream, 8).unwrap();
    buffer.on(stream)
}

fn part<'a>(view: DeviceView<'a, u32>) -> DeviceView<'a, u32> {
    let own = view;
    own.slice(1..).unwrap()
}

fn main() {}
