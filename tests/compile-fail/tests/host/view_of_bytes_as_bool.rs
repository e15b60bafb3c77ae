//! Bytes are not viewed as a type that is not valid for every bit pattern.

use curium_driver::Result;
use curium_memory::{DeviceBuffer, DeviceView};

fn flags(buffer: &DeviceBuffer<u8>) -> Result<DeviceView<'_, bool>> {
    buffer.cast::<bool>()
}

fn main() {}
