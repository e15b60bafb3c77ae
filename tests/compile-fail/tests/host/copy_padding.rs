//! The padding of a struct is uninitialized, and a copy to the device would read it.

use curium_driver::Stream;
use curium_memory::DeviceBuffer;

#[derive(Clone, Copy)]
#[repr(C)]
struct Padded {
    small: u8,
    large: u32,
}

fn copy(stream: &Stream, values: &[Padded]) -> DeviceBuffer<Padded> {
    DeviceBuffer::from_slice(stream, values).unwrap()
}

fn main() {}
