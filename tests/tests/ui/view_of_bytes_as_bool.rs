//! Bytes are not seen as values that not any byte is.

use curium_driver::Result;
use curium_memory::{DeviceBuffer, DeviceSlice};

fn flags(buffer: &DeviceBuffer<u8>) -> Result<DeviceSlice<'_, bool>> {
    buffer.as_slice().cast::<bool>()
}

fn main() {}
