//! The operands of a batch are not freed before the batch is enqueued.

use curium_driver::{Result, Stream};
use curium_memory::{DeviceBuffer, copy::CopyBatch};

fn copy(stream: &Stream, mut target: DeviceBuffer<u32>, source: DeviceBuffer<u32>) -> Result<()> {
    let batch = CopyBatch::new().copy(&mut target, &source)?;
    drop(source);
    batch.enqueue(stream)
}

fn main() {}
