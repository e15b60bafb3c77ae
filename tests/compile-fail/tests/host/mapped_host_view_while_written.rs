//! The host does not write mapped memory while a copy writes a view of it.

use curium_memory::MappedBuffer;

fn fill(mut buffer: MappedBuffer<u32>) {
    let mut values = buffer.host_view_mut().unwrap();
    buffer.fill(1).unwrap();
    values[0] = 2;
}

fn main() {}
