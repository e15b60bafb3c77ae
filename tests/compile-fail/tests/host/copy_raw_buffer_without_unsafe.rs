//! A buffer is not created from an address without `unsafe`.

use curium_driver::{DevicePointer, Result, Stream};
use curium_memory::{DeviceBuffer, StreamOrdered};

fn make(stream: &Stream) -> Result<DeviceBuffer<u32>> {
    DeviceBuffer::from_raw(stream, DevicePointer::from_raw(8), 1, StreamOrdered)
}

fn main() {}
