//! The memory of two buffers is not swapped through their slices, which would separate it from the record of its accesses.

use curium_memory::{DeviceBuffer, DeviceSlice};

fn swap(one: &mut DeviceSlice<u32>, other: &mut DeviceSlice<u32>) {
    std::mem::swap(one, other);
}

fn replace(buffer: &mut DeviceBuffer<u32>, other: DeviceBuffer<u32>) {
    **buffer = *other;
}

fn main() {}
