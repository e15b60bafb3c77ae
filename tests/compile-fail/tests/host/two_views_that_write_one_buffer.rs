//! Elements are not mutably borrowed twice.

use curium_memory::DeviceBuffer;

fn fill(buffer: &mut DeviceBuffer<u32>) {
    let whole = buffer.as_slice_mut();
    let mut part = buffer.slice_mut(1..).unwrap();
    part.fill(1).unwrap();
    whole.fill(2).unwrap();
}

fn main() {}
