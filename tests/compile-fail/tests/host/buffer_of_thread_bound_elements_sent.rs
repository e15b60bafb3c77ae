//! A buffer is `Send` only if its elements are.

use std::rc::Rc;

use curium_memory::DeviceBuffer;

fn send(buffer: DeviceBuffer<Rc<u32>>) {
    std::thread::spawn(move || drop(buffer));
}

fn main() {}
