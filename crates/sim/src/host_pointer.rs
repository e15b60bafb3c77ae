//! Pointers to host memory.

use std::ptr;

/// The byte that fills fresh memory: read as a number of any type, it is large, odd and never zero.
pub(crate) const POISON: u8 = 0xFD;

/// The part of an allocation that is filled with [`POISON`]: filling gigabytes would take seconds.
const POISONED_BYTES: usize = 256 << 20;

/// A pointer to host memory that work on other threads uses.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct HostPtr(pub(crate) *mut u8);

// SAFETY: the contract of the asynchronous functions requires callers to keep memory valid until
// the work has completed, and permits the driver to use it on other threads. The driver's own
// memory is freed after its work.
unsafe impl Send for HostPtr {}

// SAFETY: the pointer itself is never changed.
unsafe impl Sync for HostPtr {}

impl HostPtr {
    /// Returns the exposed address of the pointer.
    pub(crate) fn expose(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Creates the pointer with an exposed address.
    pub(crate) fn from_exposed(address: u64) -> Self {
        Self(ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Fills fresh memory with [`POISON`](super::POISON).
    ///
    /// # Safety
    ///
    /// `size` bytes may be written, and nothing else accesses them.
    pub(crate) unsafe fn poison(self, size: usize) {
        // SAFETY: the caller guarantees the bytes.
        unsafe { ptr::write_bytes(self.0, POISON, size.min(POISONED_BYTES)) };
    }
}
