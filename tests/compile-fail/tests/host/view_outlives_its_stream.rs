//! A view with another stream does not outlive that stream.

use curium_driver::Context;
use curium_memory::{DeviceBuffer, DeviceView};

fn view<'a>(context: &Context, buffer: &'a DeviceBuffer<u32>) -> DeviceView<'a, u32> {
    let stream = context.stream().unwrap();
    buffer.on(&stream)
}

fn fill(context: &Context, buffer: &mut DeviceBuffer<u32>) {
    let stream = context.stream().unwrap();
    let mut view = buffer.on_mut(&stream);
    drop(stream);
    view.fill(1).unwrap();
}

fn main() {}
