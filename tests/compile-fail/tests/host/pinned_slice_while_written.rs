//! A copy does not write a pinned buffer while a slice of it is in use.

use curium_memory::{DeviceBuffer, PinnedBuffer};

fn copy(device: &DeviceBuffer<u32>, pinned: &mut PinnedBuffer<u32>) -> u32 {
    let first = &pinned[0];
    device.copy_to_slice(pinned).unwrap();
    *first
}

fn main() {}
