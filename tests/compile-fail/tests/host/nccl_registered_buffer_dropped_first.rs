//! A registration owns its memory, which cannot be dropped before it, and memory that is only borrowed cannot be registered.

use curium_memory::DeviceBuffer;
use curium_nccl::Communicator;

fn dropped(communicator: &mut Communicator, buffer: DeviceBuffer<f32>) {
    let registered = communicator.register(buffer).unwrap();
    drop(buffer);
    registered.into_inner().unwrap();
}

fn borrowed(communicator: &mut Communicator, mut buffer: DeviceBuffer<f32>) {
    let registered = communicator.register(buffer.as_slice_mut()).unwrap();
    std::mem::forget(registered);
}

fn main() {}
