//! NCCL allows one thread at a time to use a communicator.

use std::sync::Arc;

use curium_nccl::Communicator;

fn share(communicator: Arc<Communicator>) {
    std::thread::spawn(move || communicator.rank());
}

fn main() {}
