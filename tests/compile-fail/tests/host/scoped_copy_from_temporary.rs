//! The source of a scoped copy lives until the end of the scope.

use curium_driver::{Result, Stream};
use curium_memory::{DeviceBuffer, copy};

fn upload(stream: &Stream, buffer: &mut DeviceBuffer<u32>) -> Result<()> {
    copy::copy_scope(stream, |scope| {
        let values = vec![1, 2, 3];
        scope.upload(&values, buffer)
    })
}

fn main() {}
