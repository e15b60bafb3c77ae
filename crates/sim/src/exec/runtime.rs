//! What kernels can ask of the host: to print, for memory, and what textures and surfaces are.

use std::sync::Arc;

use super::image::{Surface, Texture};
use super::report::Report;

/// The services behind the functions that the device's runtime provides.
pub(crate) trait Runtime: Sync {
    /// Takes what `printf` writes: all of one call.
    fn print(&self, text: &[u8]);
    /// Takes what a failed assertion of one thread says.
    fn complain(&self, text: &[u8]);
    /// Returns `true` if the launch goes on after a fault: then only the threads end that ran together with the one at fault.
    fn passes_over(&self, fault: &Report) -> bool {
        let _ = fault;
        false
    }
    /// Returns the address of `size` bytes of device memory, a multiple of 16; `None` if the heap has no more. The bytes stay valid
    /// until the launch is over, even if they are freed.
    fn allocate(&self, size: u64) -> Option<u64>;
    /// Takes memory back; false if it was not allocated.
    fn free(&self, address: u64) -> bool;
    /// Sets a value that conditional nodes of the running graph look at, if it has one with this handle.
    fn set_condition(&self, handle: u64, value: u32) {
        let _ = (handle, value);
    }
    /// Returns the texture object with this handle.
    fn texture(&self, handle: u64) -> Option<Arc<Texture>>;
    /// Returns the surface object with this handle.
    fn surface(&self, handle: u64) -> Option<Arc<Surface>>;
}
