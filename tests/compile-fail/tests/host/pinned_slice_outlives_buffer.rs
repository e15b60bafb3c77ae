//! A slice of a pinned buffer does not outlive it.

use curium_memory::PinnedBuffer;

fn leak(pinned: PinnedBuffer<u32>) -> &'static [u32] {
    &*pinned
}

fn main() {
    let _ = leak;
}
