//! A buffer goes to another thread only if its elements may.

use std::rc::Rc;

use curium_memory::DeviceBuffer;

fn send(buffer: DeviceBuffer<Rc<u32>>) {
    std::thread::spawn(move || drop(buffer));
}

fn main() {}
