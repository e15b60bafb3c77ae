//! Device memory that a handle of a library owns.

use curium_sim::{allocate, current_device, free, with_device};

/// Device memory that a handle allocates itself, such as the state of a random number generator.
/// Its accesses are declared like those to operands, so the simulator reports work of one handle
/// that is not ordered.
#[derive(Debug)]
pub(crate) struct OwnMemory {
    address: u64,
    bytes: usize,
    /// The device, as [`current_device`] returns it.
    device: (i32, usize),
}

impl OwnMemory {
    /// Allocates memory in the context that is current; `None` if there is none, or no memory is
    /// left.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let device = current_device()?;
        let address = allocate(bytes).ok()?;
        Some(Self {
            address,
            bytes,
            device,
        })
    }

    /// Returns the address and the size in bytes.
    pub(crate) fn range(&self) -> (u64, usize) {
        (self.address, self.bytes)
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed, and freeing memory waits for the device.
        if unsafe { free(self.address) }.is_err() {
            // No context is current. Without the simulator, there is nothing to free.
            // SAFETY: the handle is destroyed, and freeing memory waits for the device.
            let _ = with_device(self.device, || unsafe { free(self.address) });
        }
    }
}
