//! The destination of a scoped copy is not read before the end of the scope.

use curium_driver::{Result, Stream};
use curium_memory::{DeviceBuffer, copy};

fn download(stream: &Stream, buffer: &DeviceBuffer<u32>) -> Result<u32> {
    let mut values = [0; 3];
    copy::copy_scope(stream, |scope| {
        scope.download(buffer, &mut values)?;
        Ok(values[0])
    })
}

fn main() {}
