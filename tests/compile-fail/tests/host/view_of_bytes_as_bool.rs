//! Bytes are not viewed as a type that is not valid for every bit pattern.

use curium_driver::Result;
use curium_memory::{DeviceBuffer, DeviceSlice};

fn flags(buffer: &DeviceBuffer<u8>) -> Result<DeviceSlice<'_, bool>> {
    buffer.as_slice().cast::<bool>()
}

fn main() {}
