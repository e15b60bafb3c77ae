//! A kernel may write a zero.

use std::num::NonZeroU32;

use curium_memory::DeviceBuffer;

fn read(buffer: &DeviceBuffer<NonZeroU32>, target: &mut [NonZeroU32]) {
    buffer.copy_to_slice(target).unwrap();
}

fn main() {}
