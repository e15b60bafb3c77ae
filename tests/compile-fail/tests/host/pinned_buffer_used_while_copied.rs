//! A pinned buffer owned by a copy is not read before the copy returns it.

use curium_driver::Stream;
use curium_memory::{DeviceBuffer, PinnedBuffer, copy};

fn upload(stream: &Stream, source: PinnedBuffer<u32>, target: &mut DeviceBuffer<u32>) -> u32 {
    let _pending = copy::upload(stream, source, target);
    source[0]
}

fn main() {}
