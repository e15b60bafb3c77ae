//! A view of memory that a graph uses borrows the buffer, whatever keeps the memory.

use curium_driver::Result;
use curium_memory::MappedBuffer;

fn look(buffer: MappedBuffer<u32>) -> Result<u32> {
    let view = buffer.host_view()?;
    drop(buffer);
    Ok(view[0])
}

fn main() {}
