//! Host services for kernels: output, the heap, textures and surfaces.

use std::sync::Arc;

use crate::exec::check::report::Report;
use crate::exec::image::{Surface, Texture};

/// The host services of the device runtime functions.
pub trait Runtime: Sync {
    /// Writes the output of one `printf` call.
    fn print(&self, text: &[u8]);
    /// Writes the message of a failed assertion of one thread.
    fn write_assertion(&self, text: &[u8]);
    /// Returns `true` if the launch continues after a fault. Only the threads that executed the
    /// faulting instruction together end then.
    fn continues_after(&self, fault: &Report) -> bool {
        let _ = fault;
        false
    }
    /// Allocates `size` bytes of device memory at a multiple of 16, or returns `None` if the heap
    /// is exhausted. The bytes stay valid until the launch ends, even if they are freed.
    fn allocate(&self, size: u64) -> Option<u64>;
    /// Frees memory. Returns `false` if it was not allocated.
    fn free(&self, address: u64) -> bool;
    /// Sets the value of a conditional handle of the running graph, if the graph has this handle.
    fn set_condition(&self, handle: u64, value: u32) {
        let _ = (handle, value);
    }
    /// Returns the texture object with this handle.
    fn texture(&self, handle: u64) -> Option<Arc<Texture>>;
    /// Returns the surface object with this handle.
    fn surface(&self, handle: u64) -> Option<Arc<Surface>>;
}
