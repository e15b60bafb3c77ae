//! NCCL starts the operations of a group at its end: until then, their memory stays borrowed.

use curium_driver::Stream;
use curium_memory::DeviceBuffer;
use curium_nccl::{Communicator, Nccl, Operation, Reduction};

fn freed(nccl: &Nccl, communicator: &mut Communicator, stream: &Stream, mut buffer: DeviceBuffer<f32>) {
    nccl.group(|group| {
        group.enqueue(communicator, stream, Operation::all_reduce_in_place(&mut buffer, Reduction::Sum))?;
        drop(buffer);
        Ok(())
    })
    .unwrap();
}

fn within(nccl: &Nccl, communicator: &mut Communicator, stream: &Stream) {
    nccl.group(|group| {
        let mut buffer = DeviceBuffer::<f32>::zeroed(stream, 8)?;
        group.enqueue(communicator, stream, Operation::all_reduce_in_place(&mut buffer, Reduction::Sum))
    })
    .unwrap();
}

fn main() {}
