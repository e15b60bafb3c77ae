//! A view of a vector ends before the vector does.

use curium_memory::{DeviceSlice, DeviceVec};

fn view<'a>(vector: DeviceVec<u32>) -> DeviceSlice<'a, u32> {
    vector.as_slice()
}

fn close(vector: DeviceVec<u32>) {
    let view = vector.as_slice();
    vector.close().unwrap();
    view.to_vec().unwrap();
}

fn main() {}
