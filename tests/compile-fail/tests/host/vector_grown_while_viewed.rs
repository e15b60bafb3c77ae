//! A vector neither grows nor shrinks while a view of it exists.

use curium_memory::DeviceVec;

fn grow(vector: &mut DeviceVec<u32>) {
    let view = vector.as_slice();
    vector.push(1).unwrap();
    view.to_vec().unwrap();
}

fn shrink(vector: &mut DeviceVec<u32>) {
    let view = vector.as_slice();
    vector.shrink_to_fit().unwrap();
    view.to_vec().unwrap();
}

fn main() {}
