//! A pinned buffer that a copy owns is not read before the copy gives it back.

use curium_driver::Stream;
use curium_memory::{DeviceBuffer, PinnedBuffer, copy};

fn upload(stream: &Stream, source: PinnedBuffer<u32>, target: &mut DeviceBuffer<u32>) -> u32 {
    let _pending = copy::upload(stream, source, target);
    source[0]
}

fn main() {}
