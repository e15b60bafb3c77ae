//! A view of a vector does not outlive the vector.

use curium_memory::{DeviceSlice, DeviceVec};

fn view<'a>(vector: DeviceVec<u32>) -> &'a DeviceSlice<u32> {
    vector.as_slice()
}

fn read(vector: DeviceVec<u32>) {
    let view = vector.as_slice();
    drop(vector);
    view.to_vec().unwrap();
}

fn main() {}
