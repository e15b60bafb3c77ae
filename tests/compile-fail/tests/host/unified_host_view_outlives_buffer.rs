//! A host view of managed memory does not outlive the buffer.

use curium_memory::{HostView, UnifiedBuffer};

fn values(buffer: UnifiedBuffer<u32>) -> HostView<'static, u32> {
    buffer.host_view().unwrap()
}

fn main() {}
