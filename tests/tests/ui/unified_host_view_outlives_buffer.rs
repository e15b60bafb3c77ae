//! What the host sees of managed memory does not outlive the buffer.

use curium_memory::UnifiedBuffer;

fn values(buffer: UnifiedBuffer<u32>) -> &'static [u32] {
    buffer.host().unwrap()
}

fn main() {}
