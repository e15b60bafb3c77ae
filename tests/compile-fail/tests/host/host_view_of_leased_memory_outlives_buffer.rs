//! A host view of leased memory borrows the buffer, even if a graph keeps the memory alive.

use curium_driver::Result;
use curium_memory::MappedBuffer;

fn look(buffer: MappedBuffer<u32>) -> Result<u32> {
    let view = buffer.host_view()?;
    drop(buffer);
    Ok(view[0])
}

fn main() {}
